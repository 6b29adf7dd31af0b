"""`vit finetune`: the paper's settings, rates swept on held-out images, and what it begins from."""

import json
from pathlib import Path

import pytest
from complaints import done, failed

from vit_from_scratch import InputError
from vit_from_scratch.files import sha256
from vit_from_scratch.model.checkpoints import load_checkpoint
from vit_lab.cli import main
from vit_lab.cli.inspect import FIGURES
from vit_lab.experiments.paper import TABLE_4
from vit_lab.experiments.recipes import load_recipe
from vit_lab.experiments.records import Rate, best_rate
from vit_lab.experiments.study_runs import Place, sweep_rates
from vit_lab.experiments.suited import fine_tuning_recipe, slug_of

SIZES = {"channels": 1, "dim": 16, "depth": 2, "mlp_dim": 16}


@pytest.fixture
def weights(saved):
    return saved(**SIZES)


QUICK = ["--set", "data.train_size=60", "train.threads=1", "train.precision=float32", "--epochs", "2"]


def test_the_settings_are_those_of_the_paper():
    recipe, why = fine_tuning_recipe("tiny-imagenet", "cifar10", {})
    paper = load_recipe("table4-cifar10").train
    for option in ("optimiser", "momentum", "weight_decay", "schedule", "clip_norm"):
        assert getattr(recipe.train, option) == getattr(paper, option), option
    assert recipe.train.learning_rate in TABLE_4["cifar10"][2]
    assert (recipe.data.image_size, recipe.weights) == (64, "tiny-imagenet")
    assert "cifar10-from-tiny-imagenet: images of 64 x 64" in why


@pytest.mark.parametrize(("data", "mirrored"), [("digits", False), ("mnist", False), ("cifar10", True)])
def test_photos_are_mirrored_and_digits_are_not(data, mirrored):
    assert fine_tuning_recipe("tiny-imagenet", data, {})[0].train.augmentation.flip == mirrored


@pytest.mark.parametrize(("photos", "epochs", "batch"), [(45_000, 4, 128), (4_500, 44, 64), (450, 60, 16)])
def test_few_images_are_seen_more_often(photos, epochs, batch):
    recipe, _ = fine_tuning_recipe("tiny-imagenet", "cifar10", {"data": {"train_size": photos}})
    assert (recipe.train.epochs, recipe.train.batch_size) == (epochs, batch)


@pytest.mark.parametrize(
    ("weights", "slug"),
    [("cifar10", "cifar10"), ("B/16-384", "B-16-384"), ("runs/try/", "try"), ("a b.safetensors", "a-b")],
)
def test_a_recipe_is_named_after_what_it_begins_from(weights, slug):
    assert slug_of(weights) == slug


def test_steps_that_are_counted_decide_the_warm_up():
    def chosen(**train):
        recipe, why = fine_tuning_recipe("tiny-imagenet", "cifar10", {"train": train})
        return recipe.train, why

    counted, why = chosen(steps=70)
    assert (counted.steps, counted.warmup_steps) == (70, 7)
    assert "steps: 70, batches of 128" in why
    assert chosen(steps=5_000)[0].warmup_steps == 100
    assert chosen(steps=70, warmup_steps=20)[0].warmup_steps == 20
    in_epochs, why = chosen(epochs=1)
    assert in_epochs.warmup_steps == 35, "a tenth of 45,000 images in batches of 128"
    assert "epochs: 1, batches of 128" in why


def test_a_run_goes_from_a_checkpoint_to_a_model_that_other_commands_take(
    weights, save_photo, tmp_path, capsys
):
    out = tmp_path / "run"
    said = done(capsys, "finetune", "--weights", weights, "--data", "digits", *QUICK, "--out", str(out))
    assert "digits-from-start: images of 8 x 8, epochs: 2" in said
    model = load_checkpoint(out / "model.safetensors")
    assert (model.config.num_classes, model.config.image_shape) == (10, (8, 8))
    assert "the same accuracy as when it was trained" in done(capsys, "evaluate", str(out))
    picture = str(save_photo(tmp_path / "photo.png", seed=1))
    said = done(capsys, "predict", picture, "--weights", str(out), "--top", "10")
    found = said.removeprefix(f"{picture}: ").split(", ")
    assert sorted(one.split()[0] for one in found) == list("0123456789"), "the classes of the new head"
    assert main(["inspect", picture, "--weights", str(out), "--out", str(tmp_path / "figures")]) == 0
    assert sorted(path.name for path in (tmp_path / "figures").iterdir()) == sorted(FIGURES)
    again = ["finetune", "--weights", str(out), "--data", "digits", *QUICK, "--out", str(tmp_path / "again")]
    assert main([*again, "--image-size", "12"]) == 0, "a run's folder is a start, too, and larger images fit"
    assert load_checkpoint(tmp_path / "again" / "model.safetensors").config.grid == (3, 3)


def test_a_sweep_chooses_on_held_out_images_and_tests_only_the_best(weights, tmp_path, capsys):
    out, results = tmp_path / "swept", tmp_path / "summary.json"
    command = ["finetune", "--weights", weights, "--data", "digits", *QUICK, "--out", str(out)]
    command += ["--sweep", "1e-6", "0.1", "--seeds", "0", "1", "--results", str(results)]
    said = done(capsys, *command)
    summary = json.loads(results.read_text())
    assert summary == json.loads((out / "summary.json").read_text())
    low, high = summary["rates"]
    assert (low["rate"], high["rate"], summary["chosen"]) == (1e-6, 0.1, 0.1)
    assert f"rate 0.1: {high['validation_accuracy']:.4f} held out, chosen\n" in said
    assert f"rate 1e-06: {low['validation_accuracy']:.4f} held out\n" in said
    assert f"mean test accuracy {summary['test_accuracy_mean']:.4f}" in said
    assert summary["config"]["start"] == {"sha256": sha256(Path(weights))}
    assert summary["config"]["train"]["learning_rate"] == 0.1
    assert {"hardware", "versions", "commit", "date"} <= summary.keys()
    tested = sorted(str(path.parent.relative_to(out)) for path in out.rglob("result.json"))
    assert tested == ["rate-0.1/seed-0", "rate-0.1/seed-1"], "the losing rate never saw the test images"
    assert summary["seeds"] == [0, 1]
    before = {path: path.stat().st_mtime_ns for path in out.rglob("model.safetensors")}
    assert main(command) == 0
    after = {path: path.stat().st_mtime_ns for path in out.rglob("model.safetensors")}
    assert before == after, "nothing anew"
    assert json.loads(results.read_text()) == summary


def test_runs_at_another_rate_than_the_one_chosen_now_are_not_taken_over(weights, tmp_path, capsys):
    results = tmp_path / "summary.json"
    command = ["finetune", "--weights", weights, "--data", "digits", *QUICK, "--seeds", "0", "1"]
    command += ["--results", str(results), "--add-to-results", "--sweep"]
    assert main([*command, "1e-6", "--out", str(tmp_path / "first")]) == 0
    said = done(capsys, *command, "1e-6", "0.1", "--out", str(tmp_path / "second"))
    told = json.loads(results.read_text())
    assert (told["chosen"], told["seeds"]) == (0.1, [0, 1])
    assert "taken over" not in said, "it was trained at 1e-6"
    assert (tmp_path / "second" / "rate-0.1" / "seed-1" / "result.json").exists()
    said = done(capsys, *command, "1e-6", "0.1", "1e-7", "--out", str(tmp_path / "third"))
    assert "seed 1 was run before, and is taken over." in said, "the rate is the same"
    assert json.loads(results.read_text())["runs"][1] == told["runs"][1]


def test_the_summary_of_another_sweep_is_never_replaced(weights, saved, tmp_path, capsys):
    out, record = tmp_path / "swept", tmp_path / "swept" / "summary.json"
    command = ["finetune", "--weights", weights, "--data", "digits", *QUICK, "--out", str(out), "--sweep"]
    assert main([*command, "0.01", "0.1"]) == 0
    assert main([*command, "0.01", "0.1", "0.03"]) == 0, "a rate more loses nothing"
    before = {path: path.read_bytes() for path in out.rglob("*") if path.is_file()}
    assert [row["rate"] for row in json.loads(record.read_text())["rates"]] == [0.01, 0.1, 0.03]
    other = saved("other/start.safetensors", seed=1, **SIZES)
    capsys.readouterr()
    for rest, message in (
        (["0.1"], "(rate 0.01, rate 0.03 would be lost): expected the same ones, or more"),
        (["0.01", "0.1", "0.03", "--seed", "1"], "(seed 0 would be lost): expected"),
        (["0.01", "0.1", "0.03", "--epochs", "3"], "train.epochs (2 there, 3 now)"),
        (["0.01", "0.1", "0.03", "--weights", other], "start.sha256 ("),
    ):
        assert main([*command, *rest]) == 2
        said = capsys.readouterr().err
        assert f"{record} tells of other runs (" in said
        assert message in said
        assert said.count("\n") == 1
    assert before == {path: path.read_bytes() for path in out.rglob("*") if path.is_file()}


def test_a_rate_that_diverges_loses(weights, digits, tmp_path):
    recipe, _ = fine_tuning_recipe(weights, "digits", {"train": {"epochs": 1, "clip_norm": 0.0}})
    said = []
    rows = sweep_rates(recipe, (1e20, 0.01), tmp_path / "out", digits, Place(say=said.append))
    assert rows[0].validation_accuracy is None
    assert best_rate(rows) == 0.01
    assert said[0].startswith("rate 1e+20: ")
    with pytest.raises(InputError, match=r"training diverged at every learning rate \(1e\+20\)"):
        best_rate(rows[:1])


def test_of_equally_accurate_rates_the_one_with_the_lower_loss_is_taken():
    assert best_rate([Rate(0.1, 0.5, 1.3), Rate(0.2, 0.6, 1.2), Rate(0.3, 0.6, 1.1)]) == 0.3


@pytest.mark.parametrize("units", ["0", "1"])
def test_grey_images_do_not_fit_a_model_whose_colours_are_scaled_one_by_one(
    saved, tmp_path, capsys, monkeypatch, units
):
    monkeypatch.setenv("VIT_BFLOAT16_UNITS", units)
    saved("run/model.safetensors")
    (tmp_path / "run" / "config.toml").write_text(
        '[data]\nname = "imagenette"\nnormalisation = "imagenet"\n[model]\n[train]\n[images]\nclasses = []\n'
    )
    asked = ["--weights", str(tmp_path / "run"), "--data", "digits", "--out", str(tmp_path / "x.safetensors")]
    for command in (["finetune", *asked], ["finetune", *asked, *QUICK[:1], "data.normalisation=half"]):
        assert main(command) == 2
        *advice, said = capsys.readouterr().err.splitlines()
        assert "scales each of 3 colours in its own way ('imagenet'), and the images of digits have 1" in said
        assert "expected colour photos. Convert them, or take other weights." in said
        assert len(advice) == 1 - int(units), "that the run is in float32"
    assert "the images of digits have 1 channel: expected colour photos" in failed(
        capsys, "probe", *asked[:4]
    )
    assert sorted(path.name for path in tmp_path.iterdir()) == ["run"], "nothing was written"


def test_a_model_whose_answers_are_not_right_or_wrong_is_not_swept(digits, tmp_path):
    without = {"objective": "masked-pixels", "neighbours": 0, "train": {"label_smoothing": 0.0}}
    recipe = load_recipe("digits", without)
    with pytest.raises(InputError, match=r"rates = .*: expected none with masked pixels"):
        sweep_rates(recipe, (0.1, 0.01), tmp_path / "out", digits)
    assert not (tmp_path / "out").exists()
