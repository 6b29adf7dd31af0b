"""A summary is not replaced by one of another objective, or of runs that begin from other weights."""

import json
from pathlib import Path

import pytest

from vit_from_scratch import InputError
from vit_lab import load_recipe, load_result, run_seeds
from vit_lab.cli import main
from vit_lab.experiments import recipes
from vit_lab.experiments.recipes import recipe_from_tables
from vit_lab.experiments.summaries import check_summary

TABLES = {
    "data": {"name": "digits", "validation_size": 1000, "train_size": 40},
    "train": {"epochs": 1, "batch_size": 20, "warmup_steps": 0},
}


@pytest.fixture
def start(saved):
    """A function that leaves a checkpoint of ten classes, another one for each seed, and returns its path."""
    return lambda seed, folder="start": saved(f"{folder}/x.safetensors", seed, channels=1, num_classes=10)


def begun(weights: str, **more):
    return recipe_from_tables(TABLES | {"weights": weights} | more, {}, "same")


def test_a_summary_is_not_replaced_by_one_that_begins_from_other_weights(tmp_path, start):
    path = tmp_path / "out" / "summary.json"
    run_seeds(begun(start(0)), path.parent)
    check_summary(path, begun(start(0)))
    check_summary(path, begun(start(0, "moved")))
    check_summary(tmp_path / "new.json", begun("runs/gone"))  # there is nothing to compare with
    wrong = r"tells of other runs \(start\.sha256 \(.* there, .* now\)\): expected .*Nothing was written"
    with pytest.raises(InputError, match=wrong):
        check_summary(path, begun(start(1)))
    with pytest.raises(InputError, match=r"start\.keep_head \(not set there, True now\)"):
        check_summary(path, begun(start(0), keep_head=True))
    with pytest.raises(InputError, match=r"start\.sha256 \(.* there, not set now\)"):
        check_summary(path, begun(""))


def test_weights_are_loaded_once_for_all_seeds_and_each_begins_from_them(tmp_path, start, monkeypatch):
    loaded, load = [], recipes.open_model
    monkeypatch.setattr(recipes, "open_model", lambda *named: loaded.append(named) or load(*named))
    both = run_seeds(begun(start(0), seeds=[0, 1]), tmp_path / "both")
    assert len(loaded) == 1
    alone = run_seeds(begun(start(0), seeds=[1]), tmp_path / "alone")
    assert both["runs"][1]["test_loss"] == alone["runs"][0]["test_loss"]


def test_a_result_whose_start_is_gone_is_still_read(tmp_path):
    result, recipe = load_result("tiny-imagenet-longer"), load_recipe("tiny-imagenet-longer")
    assert result["config"]["start"]["sha256"]
    path = tmp_path / "longer.json"
    path.write_text(json.dumps(result))
    with pytest.raises(InputError, match="weights runs/tiny-imagenet-plain/seed-0"):
        check_summary(path, recipe)  # what it would begin from cannot be compared


@pytest.mark.parametrize("name", ["tiny-imagenet-masked-patches", "digits"])
def test_a_result_that_ships_may_be_replaced_by_one_of_its_recipe(tmp_path, name):
    (tmp_path / "x.json").write_text(json.dumps(load_result(name)))
    check_summary(tmp_path / "x.json", load_recipe(name))


@pytest.mark.parametrize("units", ["0", "1"])
def test_a_summary_is_not_replaced_by_one_of_another_objective(
    tmp_path, monkeypatch, capsys, save_photo, units
):
    for number in range(8):
        part = "train" if number < 6 else "test"
        save_photo(Path("photos", part, "ab"[number % 2], f"{number}.png"), (8, 8), number)
    model = ["model.patch_size=4", "model.dim=16", "model.depth=1", "model.heads=2", "model.mlp_dim=16"]
    more = ["data.validation_size=2", "data.image_size=8", "train.workers=0", "train.warmup_steps=0"]
    command = ["train", "--data", "folder:photos", "--epochs", "1", "--batch-size", "4"]
    command += ["--set", *model, *more, "--results", "r.json", "--objective"]
    monkeypatch.setenv("VIT_BFLOAT16_UNITS", units)
    assert main([*command, "masked-patches"]) == 0
    before = Path("r.json").read_bytes()
    capsys.readouterr()
    assert main([*command, "masked-pixels"]) == 2
    *advice, said = capsys.readouterr().err.splitlines()
    assert "r.json tells of other runs (photos-masked-patches there, photos-masked-pixels now)" in said
    assert len(advice) == 1 - int(units), "that the run is in float32"
    assert Path("r.json").read_bytes() == before
    summary = json.loads(before) | {"recipe": "photos-masked-pixels"}
    Path("r.json").write_text(json.dumps(summary))
    assert main([*command, "masked-pixels"]) == 2
    assert "(objective (masked-patches there, masked-pixels now)" in capsys.readouterr().err
    Path("r.json").write_bytes(before)
    assert main([*command, "masked-patches"]) == 0
