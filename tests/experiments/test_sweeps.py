"""`vit finetune`: the paper's settings, rates swept on held-out images, and what it begins from."""

import json

import pytest
import torch

from vit_from_scratch import InputError, VisionTransformer, ViTConfig
from vit_from_scratch.cli import main
from vit_from_scratch.experiments import sweeps
from vit_from_scratch.experiments.fine_tuning import fine_tuning_recipe, slug_of
from vit_from_scratch.experiments.paper import TABLE_4
from vit_from_scratch.experiments.recipes import load_recipe
from vit_from_scratch.experiments.sweeps import best_rate, sweep_rates
from vit_from_scratch.model.checkpoints import load_checkpoint, save_checkpoint


@pytest.fixture
def weights(tmp_path):
    torch.manual_seed(0)
    config = ViTConfig(8, 4, channels=1, dim=16, depth=2, heads=2, mlp_dim=16, num_classes=3)
    path = tmp_path / "start.safetensors"
    save_checkpoint(path, VisionTransformer(config))
    return str(path)


QUICK = ["--set", "data.train_size=60", "train.threads=1", "train.precision=float32", "--epochs", "2"]


def test_the_settings_are_those_of_the_paper():
    recipe, why = fine_tuning_recipe("tiny-imagenet", "cifar10", {})
    paper = load_recipe("table4-cifar10").train
    for option in ("optimiser", "momentum", "weight_decay", "schedule", "clip_norm"):
        assert getattr(recipe.train, option) == getattr(paper, option), option
    assert recipe.train.learning_rate in TABLE_4["cifar10"][2]
    assert (recipe.data.image_size, recipe.weights) == (64, "tiny-imagenet")
    assert "cifar10-from-tiny-imagenet: images of 64 x 64" in why


@pytest.mark.parametrize(("photos", "epochs", "batch"), [(45_000, 4, 128), (4_500, 44, 64), (450, 60, 16)])
def test_few_images_are_seen_more_often(photos, epochs, batch):
    recipe, _ = fine_tuning_recipe("tiny-imagenet", "cifar10", {"data": {"train_size": photos}})
    assert (recipe.train.epochs, recipe.train.batch_size) == (epochs, batch)


@pytest.mark.parametrize(
    ("weights", "slug"),
    [
        ("tiny-imagenet", "tiny-imagenet"),
        ("B/16-384", "B-16-384"),
        ("runs/try/", "try"),
        ("a b.safetensors", "a-b"),
    ],
)
def test_a_recipe_is_named_after_what_it_begins_from(weights, slug):
    assert slug_of(weights) == slug


def test_a_run_goes_from_a_checkpoint_to_a_model_that_other_commands_take(weights, tmp_path, capsys):
    out = tmp_path / "run"
    assert main(["finetune", "--weights", weights, "--data", "digits", *QUICK, "--out", str(out)]) == 0
    assert "digits-from-start: images of 8 x 8, epochs: 2" in capsys.readouterr().out
    model = load_checkpoint(out / "model.safetensors")
    assert (model.config.num_classes, model.config.image_shape) == (10, (8, 8))
    assert main(["evaluate", str(out)]) == 0
    assert "the same accuracy as when it was trained" in capsys.readouterr().out
    again = ["finetune", "--weights", str(out), "--data", "digits", *QUICK, "--out", str(tmp_path / "again")]
    assert main([*again, "--image-size", "12"]) == 0, "a run's folder is a start, too, and larger images fit"
    assert load_checkpoint(tmp_path / "again" / "model.safetensors").config.grid == (3, 3)


def test_a_sweep_chooses_on_held_out_images_and_tests_only_the_best(weights, tmp_path, capsys):
    out, results = tmp_path / "swept", tmp_path / "summary.json"
    command = ["finetune", "--weights", weights, "--data", "digits", *QUICK, "--out", str(out)]
    command += ["--sweep", "1e-6", "0.1", "--seeds", "0", "1", "--results", str(results)]
    assert main(command) == 0
    said = capsys.readouterr().out
    rows = json.loads((out / "sweep.json").read_text())
    assert rows["chosen"] == 0.1
    assert "     0.1  " in said
    assert said.count("chosen") == 1
    tested = sorted(str(path.parent.relative_to(out)) for path in out.rglob("result.json"))
    assert tested == ["rate-0.1/seed-0", "rate-0.1/seed-1"], "the losing rate never saw the test images"
    assert json.loads(results.read_text())["seeds"] == [0, 1]
    before = {path: path.stat().st_mtime_ns for path in out.rglob("model.safetensors")}
    assert main(command) == 0
    assert before == {path: path.stat().st_mtime_ns for path in out.rglob("model.safetensors")}, (
        "nothing anew"
    )


def test_a_rate_that_diverges_loses(weights, digits, tmp_path):
    recipe, _ = fine_tuning_recipe(weights, "digits", {"train": {"epochs": 1, "clip_norm": 0.0}})
    said = []
    rows = sweep_rates(recipe, (1e20, 0.01), tmp_path / "out", digits, say=said.append)
    assert rows[0]["validation_accuracy"] is None
    assert best_rate(rows) == 0.01
    assert "1e+20: " in said[0]
    with pytest.raises(InputError, match=r"training diverged at every learning rate \(1e\+20\)"):
        best_rate(rows[:1])


def test_of_equally_accurate_rates_the_one_with_the_lower_loss_is_taken():
    rows = [
        {"rate": rate, "validation_accuracy": accuracy, "validation_loss": loss}
        for rate, accuracy, loss in ((0.1, 0.5, 1.3), (0.2, 0.6, 1.2), (0.3, 0.6, 1.1))
    ]
    assert best_rate(rows) == 0.3


def test_the_test_images_are_not_touched_by_a_sweep(weights, digits, tmp_path, monkeypatch):
    recipe, _ = fine_tuning_recipe(weights, "digits", {"train": {"epochs": 1}})
    parts = []
    real = type(digits).batches
    monkeypatch.setattr(
        type(digits),
        "batches",
        lambda self, part, *a, **k: (parts.append(part), real(self, part, *a, **k))[1],
    )
    sweeps.sweep_rates(recipe, (0.01, 0.03), tmp_path / "out", digits)
    assert set(parts) == {"validation"}


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--weights", "nowhere"], "--weights nowhere: expected one of cifar10, tiny-imagenet"),
        (["--weights", "tiny-imagenet", "--image-size", "50"], "patch_size 8"),
        (["--weights", "tiny-imagenet", "--lr", "0.1", "--sweep"], "--lr for one learning rate or --sweep"),
        (["--weights", "tiny-imagenet", "--sweep", "0.1", "0.1"], "each of them once"),
        (["--weights", "tiny-imagenet", "--sweep", "-1"], "numbers above 0"),
        (
            ["--weights", "tiny-imagenet", "--results", "x.json"],
            "--results takes the summary of several seeds",
        ),
        (["--weights", "tiny-imagenet", "--sweep", "--set", "data.validation_size=0"], "there are none"),
        (["--weights", "tiny-imagenet", "--sweep", "--keep-epochs", "1"], "--keep-epochs with --sweep"),
        (["--weights", "tiny-imagenet", "--sweep", "--results", "other.json"], "is no summary of runs"),
    ],
)
def test_wrong_input_is_one_sentence(arguments, message, tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "other.json").write_text("[]")
    assert main(["finetune", "--data", "digits", *arguments]) == 2
    said = capsys.readouterr().err
    assert message in said
    assert said.count("\n") == 1
    assert not list(tmp_path.rglob("model.safetensors"))


def test_coloured_photos_do_not_fit_a_model_of_grey_ones(weights, tmp_path, capsys):
    from PIL import Image

    for part in ("train", "test"):
        for kind in ("a", "b"):
            folder = tmp_path / "photos" / part / kind
            folder.mkdir(parents=True)
            for number in range(6):
                Image.new("RGB", (8, 8), (40 * number, 0, 0)).save(folder / f"{number}.png")
    photos = f"folder:{tmp_path / 'photos'}"
    assert main(["finetune", "--weights", weights, "--data", photos, "--out", str(tmp_path / "out")]) == 2
    assert "takes 1 channels and" in capsys.readouterr().err
