"""Whole runs without labels, from a recipe or a command to a result: no test photo is touched."""

import json
import tomllib
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch
from complaints import done, failed
from stopping import result, stop_once_saved

from vit_from_scratch import InputError
from vit_from_scratch.data import ImageData, open_dataset
from vit_from_scratch.data.streaming import PhotoData
from vit_from_scratch.model.checkpoints import load_checkpoint
from vit_from_scratch.model.cost import count_parameters
from vit_from_scratch.training import evaluate_hidden, load_pretraining
from vit_lab import evaluate_run, load_recipe
from vit_lab.cli import main

TINY = ["model.patch_size=4", "model.dim=16", "model.depth=1", "model.heads=2", "model.mlp_dim=16"]


@pytest.fixture
def photos(tmp_path, save_photo) -> Path:
    """Twenty photos of 16 x 16 in two classes, in folders `train` and `test`."""
    for number in range(20):
        part = "test" if number % 5 == 0 else "train"
        save_photo(tmp_path / "photos" / part / "ab"[number % 2] / f"{number}.png", (16, 16), number)
    return tmp_path / "photos"


def command(photos: Path, *more: str) -> list[str]:
    """A run of a second on these photos."""
    small = ["data.validation_size=4", "data.image_size=16", "train.workers=0", "train.warmup_steps=0"]
    sizes = ["--epochs", "2", "--batch-size", "4", "--set", *small, *TINY]
    objective = [] if "--objective" in more else ["--objective", "masked-patches"]
    return ["train", "--data", f"folder:{photos}", *sizes, *objective, *more]


@pytest.mark.parametrize("objective", ["patches", "pixels"])
def test_a_run_is_measured_on_held_out_photos_and_says_how_to_go_on(tmp_path, capsys, photos, objective):
    assert main(command(photos, "--objective", f"masked-{objective}", "--out", "x")) == 0
    folder, written = tmp_path / "x", result(tmp_path / "x")
    said = capsys.readouterr().out.splitlines()
    assert said[-2].startswith(f"x: held-out loss {written['validation_loss']:.4f} on 4 images")
    accuracy = written["validation_accuracy"]
    if objective == "pixels":
        assert accuracy is None
        assert "accuracy" not in said[-2]
    else:
        assert f"accuracy {accuracy:.4f} on the colours of corrupted patches" in said[-2]
    assert said[-1] == f"fine-tune it: vit finetune --weights x --data folder:{photos}"
    assert {"seed", "seconds", "hardware", "versions", "commit", "date", "model_sha256"} <= written.keys()
    assert not any(name.startswith("test") for name in written)
    assert tomllib.loads((folder / "config.toml").read_text())["objective"] == f"masked-{objective}"
    model = load_checkpoint(folder / "model.safetensors")
    assert written["parameters"] == count_parameters(model)
    again = load_recipe("x/config.toml")
    data = open_dataset(again.data)
    found = evaluate_hidden(load_pretraining(folder / "pretraining.safetensors"), data.batches("validation"))
    assert (found.loss, found.accuracy) == (pytest.approx(written["validation_loss"], abs=1e-5), accuracy)


@pytest.mark.parametrize(("system", "quote"), [("linux", "'"), ("win32", '"')])
def test_the_command_that_goes_on_is_quoted_as_the_shell_there_reads_it(
    photos, monkeypatch, capsys, system, quote
):
    numbers = {"epochs": 2, "seconds": 1.0, "validation_images": 4}
    numbers |= {"validation_loss": 1.0, "validation_accuracy": None}
    monkeypatch.setattr("vit_lab.run", lambda *given, **options: numbers)
    monkeypatch.setattr("vit_lab.cli.training.sys", SimpleNamespace(platform=system))
    said = done(capsys, *command(photos, "--out", "my run", "--data-dir", "my data"))
    words = f"--weights {quote}my run{quote} --data folder:{photos} --data-dir {quote}my data{quote}"
    assert said.endswith(f"fine-tune it: vit finetune {words}\n")


def test_no_test_photo_is_touched(photos, monkeypatch):
    batches = {kind: kind.batches for kind in (PhotoData, ImageData)}

    def watched(self, part, *arguments, **options):
        assert part != "test"
        return batches[type(self)](self, part, *arguments, **options)

    for kind in batches:
        monkeypatch.setattr(kind, "batches", watched)
    for path in (photos / "test").rglob("*.png"):
        path.write_bytes(b"no picture any more")
    assert main(command(photos, "--out", "x")) == 0
    assert main(["train", "--data", "digits", "--objective", "masked-pixels", "--epochs", "1"]) == 0


def test_a_finished_run_says_so_and_a_stopped_one_goes_on_to_the_same_bytes(
    tmp_path, capsys, photos, monkeypatch
):
    first = done(capsys, *command(photos, "--out", "whole")).splitlines()[-2]
    again = done(capsys, *command(photos, "--out", "whole"))
    assert "whole is finished." in again
    assert first in again
    with monkeypatch.context() as patch:
        stop_once_saved(patch)
        assert main(command(photos, "--out", "stopped")) == 130
    assert "the same command goes on from there" in capsys.readouterr().err
    assert "was stopped after epoch 1 of 2; it goes on" in done(capsys, *command(photos, "--out", "stopped"))
    for name in ("model.safetensors", "pretraining.safetensors"):
        assert (tmp_path / "stopped" / name).read_bytes() == (tmp_path / "whole" / name).read_bytes()


def shown(capsys, *arguments: str) -> dict:
    return tomllib.loads(done(capsys, "train", *arguments, "--show"))


def test_settings_for_classes_are_changed_where_they_would_touch_labels(capsys):
    for arguments in (("--data", "imagenette"), ("--data", "cifar10"), ("--data", "tiny-imagenet")):
        recipe = shown(capsys, *arguments, "--objective", "masked-patches")
        augmentation = recipe["train"]["augmentation"]
        assert (recipe["objective"], recipe["train"]["label_smoothing"]) == ("masked-patches", 0)
        assert [augmentation[name] for name in ("mixup", "cutmix", "erase")] == [0, 0, 0]
        assert recipe["data"]["validation_size"] > 0
    pixels = shown(capsys, "--recipe", "digits", "--objective", "masked-pixels", "--seed", "3")
    assert (pixels["objective"], pixels["data"]["validation_size"]) == ("masked-pixels", 237)
    assert (pixels["seeds"], pixels["train"]["seed"]) == ([3], 3)
    assert "neighbours" not in pixels
    mirrored = shown(capsys, "--recipe", "cifar10-half-hour-plain", "--objective", "masked-pixels")
    assert "flip_test" not in mirrored, "a test on classes, too"
    typed = ("--objective", "masked-patches", "--set", "train.augmentation.erase=0.3")
    kept = shown(capsys, "--data", "cifar10", *typed)
    assert kept["train"]["augmentation"]["erase"] == 0.3, "what was typed wins"


def test_a_recipe_without_labels_may_be_asked_for_the_other_objective(capsys):
    name = "tiny-imagenet-masked-patches"
    same = shown(capsys, "--recipe", name, "--objective", "masked-patches")
    assert same["claim"] == load_recipe(name).claim
    other = shown(capsys, "--recipe", name, "--objective", "masked-pixels")
    assert other["objective"] == "masked-pixels"
    assert "claim" not in other


@pytest.mark.parametrize("objective", ["patches", "pixels"])
def test_several_seeds_leave_a_summary_of_what_was_held_out(tmp_path, capsys, photos, objective):
    asked = command(photos, "--objective", f"masked-{objective}", "--out", "x", "--results", "found.json")
    said = done(capsys, *asked, "--seeds", "0", "3")
    summary = json.loads((tmp_path / "found.json").read_text())
    assert summary == json.loads((tmp_path / "x/summary.json").read_text())
    singles = [result(tmp_path / f"x/seed-{seed}") for seed in (0, 3)]
    losses = [single["validation_loss"] for single in singles]
    assert losses[0] != losses[1]
    assert summary["validation_loss_mean"] == pytest.approx(sum(losses) / 2)
    assert summary["validation_loss_std"] == pytest.approx(abs(losses[0] - losses[1]) / 2**0.5)
    assert summary["objective"] == f"masked-{objective}"
    assert (summary["seeds"], summary["validation_images"]) == ([0, 3], 4)
    assert ("validation_accuracy_mean" in summary) == (objective == "patches")
    assert not any(name.startswith("test") for name in summary)
    for run_of_seed, single in zip(summary["runs"], singles, strict=True):
        assert run_of_seed["validation_loss"] == single["validation_loss"]
        assert len(run_of_seed["curves"]) == 2
    assert f"mean held-out loss {summary['validation_loss_mean']:.4f} (standard deviation" in said
    assert "vit finetune --weights x/seed-0" in said
    other = ["--data", "digits", "--objective", "masked-pixels", "--results", "found.json"]
    assert "tells of other runs" in failed(capsys, "train", *other)


def test_a_run_without_labels_has_no_test_number(photos, tmp_path):
    assert main(command(photos, "--out", "x")) == 0
    with pytest.raises(InputError, match=r"knows no classes: expected a run on classes\. Fine-tune it first"):
        evaluate_run(tmp_path / "x")


@pytest.mark.parametrize("objective", ["patches", "pixels"])
def test_a_run_without_labels_is_fine_tuned_by_the_command_that_it_names(photos, tmp_path, capsys, objective):
    said = done(capsys, *command(photos, "--objective", f"masked-{objective}", "--out", "x")).splitlines()
    named = said[-1].removeprefix("fine-tune it: vit ").split()
    small = ["data.validation_size=4", "train.workers=0", "train.precision=float32", "train.batch_size=4"]
    assert main([*named, "--epochs", "1", "--lr", "1e-9", "--set", *small, "--out", "y"]) == 0
    before, after = (load_checkpoint(tmp_path / run / "model.safetensors") for run in "xy")
    for name, weight in before.encoder.state_dict().items():
        assert torch.allclose(after.encoder.state_dict()[name], weight, atol=1e-6), name
    assert after.config.image_shape == (16, 16)
    assert result(tmp_path / "y")["test_images"] == 4
    assert "objective" not in tomllib.loads((tmp_path / "y/config.toml").read_text())
    assert main(["evaluate", "y"]) == 0
