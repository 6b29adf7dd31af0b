"""`--data NAME`: settings chosen to suit a data set, and a run on photos of your own from end to end."""

import subprocess
import sys
import tomllib

import pytest
from complaints import done

from vit_from_scratch import InputError, ViTConfig
from vit_lab.experiments.suited import SIDES, SURVEYS, Survey, suited_patch, suited_recipe, suited_tables


@pytest.fixture
def photos(tmp_path, save_photo):
    """Ten photos of each of three colours, CLASS/*.png, 34 x 40 pixels."""
    for name, colour in (("blue", (0, 0, 1)), ("green", (0, 1, 0)), ("red", (1, 0, 0))):
        for number in range(10):
            shade = tuple(20 * number + 60 * share for share in colour)
            save_photo(tmp_path / "photos" / name / f"{number}.png", (34, 40), colour=shade)
    return tmp_path / "photos"


@pytest.mark.parametrize("name", SURVEYS)
def test_every_named_data_set_has_settings(name):
    recipe, _ = suited_recipe(name, {})
    assert recipe.data.name == name
    side = recipe.data.image_size or {"digits": 8, "mnist": 28, "cifar10": 32}[name]
    ViTConfig.from_dict({"image_size": side, **recipe.model})


@pytest.mark.parametrize("side", [*SIDES, 8, 16, 28, 224, 384])
def test_every_side_is_cut_into_64_to_200_patches(side):
    assert 64 <= (side // suited_patch(side)) ** 2 <= 200


def test_a_side_that_no_patch_suits_is_refused_unless_the_patch_is_named():
    with pytest.raises(
        InputError, match=r"data\.image_size = 37: .*a multiple of 8, say 40, or model\.patch_size"
    ):
        suited_recipe("imagenette", {"data": {"image_size": 37}})
    changes = {"data": {"image_size": 37}, "model": {"patch_size": 37}}
    assert suited_recipe("imagenette", changes)[0].model["patch_size"] == 37


def test_the_warm_up_follows_from_the_steps_where_these_are_counted():
    recipe, why = suited_recipe("imagenette", {"train": {"steps": 70}})
    assert (recipe.train.steps, recipe.train.warmup_steps) == (70, 7)
    assert "steps: 70, batches of" in why
    assert suited_recipe("imagenette", {"train": {"steps": 0}})[0].train.warmup_steps == 200


def test_the_side_follows_the_photos_and_is_no_larger():
    sides = {
        side: suited_tables("folder:x", Survey(100, side, 2), {})["data"]["image_size"]
        for side in (9, 28, 33, 100, 159, 3000)
    }
    assert sides == {9: 8, 28: 28, 33: 32, 100: 96, 159: 128, 3000: 160}


def test_fewer_photos_are_seen_more_often():
    epochs = [
        suited_tables("folder:x", Survey(count, 64, 2), {})["train"]["epochs"] for count in (50, 6_000, 10**6)
    ]
    assert epochs == [200, 100, 10]


def test_a_smaller_part_of_the_photos_is_what_settings_suit():
    recipe, why = suited_recipe("cifar100", {"data": {"train_size": 500}})
    steps = recipe.train.epochs * (500 // recipe.train.batch_size)
    assert (recipe.train.epochs, recipe.train.batch_size) == (200, 16)
    assert recipe.train.warmup_steps == 200 < steps / 10
    assert "500 of 50,000 training photos" in why
    assert "cifar100: 50,000 training photos" in suited_recipe("cifar100", {})[1]


@pytest.mark.parametrize("named", ["--data digits", "--data cifar100", "--recipe cifar10-small"])
def test_a_model_that_is_given_keeps_its_sizes(named, capsys):
    command = f"train {named} --weights tiny-imagenet --show --set"
    shown = done(capsys, *command.split(), "model.dropout=0.1")
    assert tomllib.loads(shown)["model"] == {"dropout": 0.1}
    assert "patches of" not in shown


def test_what_is_asked_for_wins_and_the_rest_follows():
    changes = {"data": {"image_size": 64}, "train": {"epochs": 1, "batch_size": 500}}
    recipe, sentence = suited_recipe("imagenette", changes)
    assert (recipe.data.image_size, recipe.model["patch_size"]) == (64, 8)
    assert (recipe.train.epochs, recipe.train.batch_size) == (1, 500)
    assert recipe.train.warmup_steps <= 2, "the run has 18 steps"
    assert "images of 64 x 64, patches of 8" in sentence


QUICK = ["model.dim=8", "model.heads=2", "model.depth=1", "model.mlp_dim=8", "train.workers=0"]
QUICK += ["train.threads=1"]


def test_photos_of_your_own_from_a_folder_to_a_named_class(photos, tmp_path, capsys):
    run = str(tmp_path / "run")
    command = ["train", "--data", f"folder:{photos}", "--epochs", "2", "--out", run, "--set", *QUICK]
    chosen, drawn, reached = done(capsys, *command).splitlines()
    assert chosen.startswith("photos: 24 training photos of 3 classes, short side 34 pixels. Chosen to suit")
    assert "images of 32 x 32, patches of 4" in chosen
    assert "6 of its 30 photos, a fifth of each class, are held out" in drawn
    assert "on 6 images" in reached
    settings = tomllib.loads((tmp_path / "run" / "config.toml").read_text())
    assert settings["images"]["classes"] == ["blue", "green", "red"]
    assert settings["data"]["validation_size"] == 3
    assert "the same accuracy" in done(capsys, "evaluate", run)
    said = done(capsys, "predict", str(photos / "red" / "0.png"), "--weights", run)
    assert all(name in said for name in ("blue", "green", "red"))
    assert "class" not in said.partition(": ")[2]
    assert "is finished" in done(capsys, *command)


def test_show_prints_toml_with_the_reason_above_it_and_needs_no_pytorch(photos):
    code = (
        "import sys; from vit_lab.cli import main; "
        f"main(['train', '--data', 'folder:{photos}', '--show']); "
        "sys.exit(any(name in sys.modules for name in ('torch', 'sklearn', 'torchvision')))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0
    assert done.stdout.startswith("# photos: 24 training photos")
    assert tomllib.loads(done.stdout)["model"]["patch_size"] == 4


def test_images_in_memory_have_no_settings_by_name():
    with pytest.raises(InputError, match="--data tensors: expected a data set's name"):
        suited_recipe("tensors", {})
