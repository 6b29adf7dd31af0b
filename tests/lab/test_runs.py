"""Runs of recipes in their folders: what is there is never lost, and never taken for something else."""

import json
import os
import shutil
import tomllib
from dataclasses import replace
from pathlib import Path

import pytest
import tomli_w
from complaints import done, failed
from stopping import CHANGES, content, recipe, result

from vit_from_scratch import InputError
from vit_from_scratch.data import DataConfig, open_dataset
from vit_from_scratch.files import sha256
from vit_from_scratch.model.checkpoints import load_checkpoint, save_checkpoint
from vit_from_scratch.model.vit import VisionTransformer
from vit_from_scratch.training import predict
from vit_lab import evaluate_run, load_recipe, run, run_seeds
from vit_lab.experiments.study_runs import Place
from vit_lab.experiments.summaries import read_summary
from vit_lab.runs.fingerprints import data_fingerprint
from vit_lab.runs.run_folder import RunFolder
from vit_lab.runs.trained_models import open_model


@pytest.fixture(scope="module")
def two_seeds(tmp_path_factory):
    """A folder with the runs of seeds 0 and 1; tests work on copies."""
    folder = tmp_path_factory.mktemp("seeds")
    run_seeds(recipe(0, 1), folder)
    return folder


@pytest.fixture
def folder(two_seeds, tmp_path) -> Path:
    return Path(shutil.copytree(two_seeds, tmp_path / "all"))


def refused(folder: Path, message: str, *seeds: int, **train) -> None:
    before = content(folder)
    with pytest.raises(InputError, match=message):
        run_seeds(recipe(*seeds, **train), folder)
    assert content(folder) == before


def test_mirrored_test_images_are_a_second_number_beside_the_first(two_seeds, tmp_path):
    summary = run_seeds(replace(recipe(0, 1), flip_test=True), tmp_path / "flipped")
    plain = json.loads((two_seeds / "summary.json").read_text())
    data = open_dataset(DataConfig(**CHANGES["data"], name="digits"))
    for one, other in zip(summary["runs"], plain["runs"], strict=True):
        assert one["test_accuracy"] == other["test_accuracy"]
        assert "test_flip_accuracy" not in other
        model = open_model(str(tmp_path / "flipped" / f"seed-{one['seed']}")).model
        logits = [predict(model, data.normalise(data.test_images.float()).flip(axis)) for axis in ([], [-1])]
        right = sum(view.softmax(dim=1) for view in logits).argmax(dim=1) == data.test_labels
        assert one["test_flip_accuracy"] == pytest.approx(right.float().mean().item(), abs=1e-6)
        assert one["test_flip_accuracy"] != one["test_accuracy"]
    shares = [one["test_flip_accuracy"] for one in summary["runs"]]
    assert summary["test_flip_accuracy_mean"] == pytest.approx(sum(shares) / 2)


def test_a_summary_is_not_replaced_by_one_of_fewer_or_other_seeds(folder):
    refused(folder, r"summary\.json tells of other runs \(seed 0, seed 1 would be lost\)", 2)
    refused(folder, r"\(seed 1 would be lost\)", 0)
    refused(folder, r"train\.learning_rate \(0\.003 there, 0\.5 now\)", 0, 1, learning_rate=0.5)
    assert run_seeds(recipe(0, 1, 2), folder)["seeds"] == [0, 1, 2]


@pytest.mark.parametrize("foreign", ["{}", "[]", "years of work", '{"recipe": "digits", "runs": 5}', "null"])
def test_a_foreign_summary_is_left_alone(folder, foreign):
    (folder / "summary.json").write_text(foreign)
    refused(folder, r"summary\.json is not a summary of runs.*Nothing was written", 0, 1)


def test_a_foreign_results_file_is_left_alone_and_nothing_is_trained(tmp_path, capsys):
    (tmp_path / "notes.json").write_text("mine")
    for name in ("notes.json", "."):
        said = failed(capsys, "train", "--data", "digits", "--seeds", "0", "--out", "x", "--results", name)
        assert "is not a summary of runs" in said
    assert os.listdir(tmp_path) == ["notes.json"]
    assert (tmp_path / "notes.json").read_text() == "mine"


def change_result(folder: Path, **changes) -> None:
    changed = {key: value for key, value in (result(folder) | changes).items() if value != "gone"}
    (folder / "result.json").write_text(json.dumps(changed))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"data_dir": 5}, r"has data_dir = 5: expected a run's result"),
        ({"hardware": "gone"}, r"has hardware = None: expected a run's result"),
        ({"date": "gone"}, r"has date = None"),
        ({"commit": 7}, r"has commit = 7"),
        ({"test_loss": "0.1"}, r"has test_loss = '0.1'"),
        ({"test_accuracy": 10**400}, r"has test_accuracy = 1000"),
        ({"model_sha256": "gone"}, r"has model_sha256 = None"),
        ({"seed": 1}, r"is of seed 1: expected that of seed 0"),
    ],
)
def test_a_damaged_result_is_one_clear_error(folder, changes, message):
    change_result(folder / "seed-0", **changes)
    refused(folder, message, 0, 1)


def test_another_runs_model_is_not_taken_for_this_runs(folder):
    shutil.copy(folder / "seed-1" / "model.safetensors", folder / "seed-0")
    message = r"model\.safetensors is not the model that result\.json tells of"
    refused(folder, message, 0, 1)
    with pytest.raises(InputError, match=message):
        evaluate_run(folder / "seed-0")


def with_five_classes(folder: Path) -> None:
    """Put a model of five classes into a run, with its checksum."""
    path = folder / "model.safetensors"
    save_checkpoint(path, VisionTransformer(replace(load_checkpoint(path).config, num_classes=5)))
    change_result(folder, model_sha256=sha256(path))


def test_a_model_that_fits_neither_settings_nor_data_is_one_clear_error(folder):
    run_folder = folder / "seed-0"
    with_five_classes(run_folder)
    with pytest.raises(InputError, match=r"not of the same run as .*model\.num_classes \(5 there, 10 now\)"):
        evaluate_run(run_folder)
    config = run_folder / "config.toml"
    config.write_text(config.read_text().replace("num_classes = 10", "num_classes = 5"))
    with pytest.raises(InputError, match=r"trained on other data: model\.num_classes = 5: expected 10 for"):
        evaluate_run(run_folder)


def test_data_whose_classes_have_other_names_are_one_clear_error(folder, capsys):
    config = folder / "seed-0" / "config.toml"
    noted = tomllib.loads(config.read_text())
    assert noted["images"]["classes"] == list("0123456789")
    noted["images"]["classes"][3:5] = ["4", "3"]
    config.write_text(tomli_w.dumps(noted))
    message = r"was trained on other data: class 3 was '4' and is '3' in digits\. Put its own back"
    with pytest.raises(InputError, match=message):
        evaluate_run(folder / "seed-0")
    noted["images"]["classes"] = [f"class {number}" for number in range(10)]
    config.write_text(tomli_w.dumps(noted))
    assert evaluate_run(folder / "seed-0")[0].images == 360, "nobody noted their names"


def test_evaluate_says_on_how_many_images_it_measured(folder, capsys):
    change_result(folder / "seed-0", test_images=5)
    assert evaluate_run(folder / "seed-0")[0].images == 360
    out = done(capsys, "evaluate", str(folder / "seed-0"))
    assert "on 360 images" in out
    assert "on 5 images; the data, the device or the package differs" in out


def test_a_noted_folder_that_is_gone_is_passed_over(folder, tmp_path, monkeypatch):
    """Data may be downloaded again then, as where none was noted."""
    looked, original = [], open_dataset
    monkeypatch.setattr(
        "vit_lab.runs.finished.open_dataset", lambda config, there: looked.append(there) or original(config)
    )
    for noted in (str(tmp_path), str(tmp_path / "gone")):
        change_result(folder / "seed-0", data_dir=noted)
        evaluate_run(folder / "seed-0")
    assert looked == [str(tmp_path), None]


def test_a_runs_settings_are_a_recipe(folder):
    again = load_recipe(str(folder / "seed-0" / "config.toml"))
    assert again.train == recipe(0).train
    assert again.data == recipe(0).data


@pytest.fixture
def photos(tmp_path, save_photo):
    for part in ("train", "test"):
        for number, name in enumerate(("cat", "dog", "cat", "dog")):
            save_photo(tmp_path / "photos" / part / name / f"{number}.png", colour=(60 * number, 9, 9))
    return tmp_path / "photos"


def test_photos_are_told_apart_by_name_size_and_class_but_not_by_place(photos, tmp_path):
    def found(folder=photos) -> str:
        return data_fingerprint(open_dataset(DataConfig(f"folder:{folder}", image_size=8)))

    first = found()
    assert found() == first
    assert found(shutil.copytree(photos, tmp_path / "elsewhere" / "copy")) == first
    for change in (
        lambda: os.rename(photos / "train/cat/0.png", photos / "train/cat/9.png"),
        lambda: os.rename(photos / "train/cat/9.png", photos / "train/dog/9.png"),
        lambda: (photos / "test/dog/1.png").write_bytes((photos / "test/dog/1.png").read_bytes() + b"more"),
        lambda: (photos / "test/dog/3.png").unlink(),
    ):
        change()
        assert found() != first
        first = found()


def test_epochs_are_kept_on_the_way_even_over_a_stop(tmp_path, monkeypatch):
    whole, stopped, two = tmp_path / "whole", tmp_path / "stopped", recipe(0, epochs=3)
    run(two, whole, keep=[0, 2, 3])
    names = [f"epoch-{number:04}.safetensors" for number in (0, 2, 3)]
    assert sorted(path.name for path in (whole / "epochs").iterdir()) == names
    kept = open_model(str(whole / "epochs/epoch-0002.safetensors"))
    assert (kept.class_names, kept.normalisation) == (tuple("0123456789"), "half"), "it is still that run's"
    untrained = load_checkpoint(whole / "epochs/epoch-0000.safetensors")
    assert not untrained.head.weight.any()  # a head begins as zeros
    end = load_checkpoint(whole / "epochs/epoch-0003.safetensors").state_dict()
    shipped = load_checkpoint(whole / "model.safetensors").state_dict()
    assert all(end[name].equal(tensor) for name, tensor in shipped.items())

    keep = RunFolder.keep_epoch

    def pull_the_plug(self, state):
        if state.epoch == 2:  # the folder is saved, the model is not kept yet
            raise KeyboardInterrupt
        keep(self, state)

    with monkeypatch.context() as patch:
        patch.setattr(RunFolder, "keep_epoch", pull_the_plug)
        with pytest.raises(KeyboardInterrupt):
            run(two, stopped, keep=[0, 2, 3])
    run(two, stopped, keep=[0, 2, 3])
    kept = [{path.name: path.read_bytes() for path in (f / "epochs").iterdir()} for f in (whole, stopped)]
    assert kept[0] == kept[1]

    end, untrained = (whole / "epochs" / names[i] for i in (2, 0))  # the finished model may be an earlier one
    end.write_bytes(untrained.read_bytes())
    run(two, whole, keep=[0, 2, 3])
    assert end.read_bytes() == untrained.read_bytes(), "a finished run keeps nothing anew"


def test_an_epoch_that_a_run_is_past_cannot_be_kept(tmp_path):
    two = recipe(0, epochs=2)
    run(two, tmp_path / "x", keep=[1])
    with pytest.raises(InputError, match=r"keep: 2, and the run in .*x is past it: expected those that"):
        run(two, tmp_path / "x", keep=[1, 2])
    assert run(two, tmp_path / "x", keep=[1])["epochs"] == 2


def test_an_epoch_that_never_comes_cannot_be_kept(tmp_path):
    with pytest.raises(InputError, match="epochs to keep: 4, and the run has 1: expected 0 to 1"):
        run(recipe(0), tmp_path / "x", keep=[0, 4])
    assert not list(tmp_path.iterdir()), "nothing was written"


def test_seeds_that_a_summary_tells_of_are_taken_over_on_another_machine(two_seeds, tmp_path):
    ((known,),) = read_summary(two_seeds / "summary.json")[1:]
    assert known.seeds == [0, 1]
    said = []
    there = run_seeds(recipe(0, 1, 2), tmp_path / "there", Place(say=said.append), known=known)
    assert [path.name for path in sorted((tmp_path / "there").glob("seed-*"))] == ["seed-2"]
    taken_over = [f"seed {seed} was run before, and is taken over." for seed in (0, 1)]
    assert [sentence for sentence in said if "taken over" in sentence] == taken_over
    here = run_seeds(recipe(0, 1, 2), Path(shutil.copytree(two_seeds, tmp_path / "here")))
    varying = {"date", "seconds_max", "runs"}
    assert there.keys() == here.keys()
    assert all(there[key] == here[key] for key in there.keys() - varying)
    for one, other in zip(there["runs"][:2], here["runs"][:2], strict=True):
        assert one == other, "numbers, curve and origin"
    assert read_summary(tmp_path / "nothing.json") == ("", [])
