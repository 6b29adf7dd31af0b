import shlex
import tomllib
import types
from dataclasses import replace
from importlib import resources
from pathlib import Path

import numpy as np
import pytest
import torch

from vit_from_scratch import InputError, VisionTransformer, ViTConfig
from vit_from_scratch.data.augmentation import PRESETS
from vit_from_scratch.data.datasets import open_dataset
from vit_from_scratch.model.checkpoints import save_checkpoint
from vit_lab.cli import build_parser
from vit_lab.cli.train import chosen_recipe
from vit_lab.experiments.paper import paper_names
from vit_lab.experiments.recipes import load_recipe, recipe_names

DIGITS = "[data]\nname = 'digits'\n"


def write(tmp_path, text: str) -> str:
    (tmp_path / "mine.toml").write_text(text)
    return str(tmp_path / "mine.toml")


@pytest.mark.parametrize("name", recipe_names())
def test_every_recipe_says_what_it_claims_and_how_to_run_it(name):
    recipe = load_recipe(name)
    assert recipe.claim.endswith(".")
    program, *arguments = shlex.split(recipe.command)
    typed = build_parser().parse_args(arguments)
    assert (program, typed.command, typed.recipe) == ("vit", "train", name)
    assert typed.results == Path(f"vit_lab/results/{name}.json")
    measured = {"masked-patches": "validation_accuracy", "masked-pixels": "validation_loss"}
    assert recipe.expect.keys() == {measured.get(recipe.objective, "test_accuracy")}
    assert chosen_recipe(typed) == (recipe, ""), "the command changes nothing"
    assert all(0 < least < 1 for least in recipe.expect.values())


@pytest.mark.parametrize("name", recipe_names())
def test_a_recipe_printed_and_read_again_is_the_same(name, tmp_path):
    recipe = load_recipe(name)
    again = load_recipe(write(tmp_path, recipe.to_toml()))
    assert replace(again, name=name) == recipe


def test_the_recipes_with_labels_and_without_differ_in_what_they_ask_alone():
    names = ("labels", "masked-patches", "masked-pixels")
    labels, patches, pixels = (load_recipe(f"tiny-imagenet-{name}") for name in names)
    assert (labels.objective, patches.objective, pixels.objective) == ("classes", *names[1:])
    assert labels.tables() == patches.tables() == pixels.tables()
    assert patches.train.steps == 2100
    assert patches.model == load_recipe("tiny-imagenet-plain").model


def test_numbers_of_numpy_are_those_of_toml():
    given = {"model": {"patch_size": np.int64(7), "dim": np.int64(48), "heads": 4}}
    recipe = load_recipe("mnist", given)
    assert tomllib.loads(recipe.to_toml())["model"]["patch_size"] == 7


def test_a_recipe_that_names_no_seeds_means_its_own(tmp_path):
    text = DIGITS + "[train]\nseed = 7"
    assert load_recipe(write(tmp_path, text)).seeds == (7,)
    poster = load_recipe("poster", {"train": {"seed": 3}, "seeds": [3]})
    again = load_recipe(write(tmp_path, poster.to_toml()))
    assert (again.seeds, again.train.seed) == ((3,), 3)
    assert load_recipe("digits", {"train": {"seed": 7}}).seeds == (7,)
    with pytest.raises(InputError, match=r"train\.seed = 7: expected one of seeds = \[0, 1\]"):
        load_recipe(write(tmp_path, "seeds = [0, 1]\n" + text))


def test_a_recipes_own_seeds_are_no_change():
    for name in ("digits", "cifar10-small", "tiny-imagenet-plain"):
        recipe = load_recipe(name)
        assert load_recipe(name, {"seeds": list(recipe.seeds)}) == recipe
    assert load_recipe("tiny-imagenet-plain", {"seeds": [1]}).claim == ""


@pytest.mark.parametrize(("key", "default"), [("whiten", False), ("flip_test", False), ("neighbours", 0)])
def test_what_a_recipe_does_not_say_is_no_change_where_it_is_the_default(key, default):
    assert load_recipe("cifar10-small", {key: default}) == load_recipe("cifar10-small")


def test_epochs_are_refused_where_a_recipe_counts_steps():
    with pytest.raises(
        InputError, match=r"train\.epochs = 1: table4-cifar10 counts steps, .* train\.steps=0"
    ):
        load_recipe("table4-cifar10", {"train": {"epochs": 1}})
    assert load_recipe("table4-cifar10", {"train": {"epochs": 1, "steps": 0}}).train.epochs == 1
    with pytest.raises(InputError, match=r"train\.epochs = 3 with train\.steps = 50: expected one of"):
        load_recipe("digits", {"train": {"epochs": 3, "steps": 50}})


def test_a_change_to_a_preset_keeps_the_rest_of_it():
    changed = load_recipe("poster", {"train": {"augmentation": {"flip": False}}}).train.augmentation
    assert changed == replace(PRESETS["poster"], flip=False)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (DIGITS + "[trian]\nepochs = 1", r"unknown option of the file 'trian'.*did you mean 'train'"),
        (DIGITS + "[train]\nepohcs = 1", r"option of \[train\] 'epohcs'.*did you mean 'epochs'"),
        (DIGITS + "[model]\nheds = 1", r"option of \[model\] 'heds'.*did you mean 'heads'"),
        (DIGITS + "[train]\nepochs = '1'", r"train\.epochs = '1': expected a whole number"),
        (
            DIGITS + "[train.augmentation]\nflop = true",
            r"option of \[train\.augmentation\] 'flop'.*mean 'flip'",
        ),
        (DIGITS + "[train]\nlearning_rate = inf", r"learning_rate = inf: expected a finite number"),
        (DIGITS + "split_seed = 4294967296", r"split_seed = 4294967296: expected 0 to 2\^32 - 1"),
        (
            "objective = 'patches'\n" + DIGITS,
            r"unknown objective 'patches': .*'masked-patches', 'masked-pixels'",
        ),
        (
            "objective = 'masked-pixels'\nneighbours = 3\n" + DIGITS,
            r"neighbours = 3: expected 0 with objective = 'mask",
        ),
        ("seeds = [1, 1]\n" + DIGITS, r"seeds = \[1, 1\]: expected each of them once"),
        ("seeds = ['a']\n" + DIGITS, r"seeds = 'a': expected a whole number"),
        ("seeds = [-1]\n" + DIGITS, r"seeds = \[-1\]: expected 0 to 2\^63 - 1"),
        ("expect = 5\n" + DIGITS, r"expect = 5: expected a table\."),
        ("train = 5\n" + DIGITS, r"train = 5: expected a table"),
        ("epochs 1", r"is not TOML"),
        ("[data]\nnam = 'digits'", r"option of \[data\] 'nam'.*did you mean 'name'"),
        ("[data]\nsplit_seed = 0", r"\[data\] has no 'name': expected a string"),
        ("[data]\nname = 'digit'", r"unknown data set 'digit'.*did you mean 'digits'"),
        ("[train]\nepochs = 1", r"the file has no 'data': expected a table"),
    ],
)
def test_a_typo_in_a_recipe_is_one_clear_error(tmp_path, text, message):
    with pytest.raises(InputError, match=message):
        load_recipe(write(tmp_path, text))


def test_an_unknown_recipe_is_refused_with_the_known_ones():
    with pytest.raises(InputError, match=r"unknown recipe 'digit'.*did you mean 'digits'"):
        load_recipe("digit")
    with pytest.raises(InputError, match=r"no recipe 'nowhere\.toml'"):
        load_recipe("nowhere.toml")


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("table3-b16-jft300m", (7, 8e-4, "linear", 0.1, 0.0)),
        ("table3-l16-jft300m", (14, 4e-4, "linear", 0.1, 0.0)),
        ("table3-h14-jft300m", (14, 3e-4, "linear", 0.1, 0.0)),
        ("table3-l32-imagenet21k", (90, 1e-3, "linear", 0.03, 0.1)),
        ("table3-b32-imagenet", (300, 3e-3, "cosine", 0.3, 0.1)),
    ],
)
def test_the_papers_pretraining_is_a_recipe(name, expected):
    recipe = load_recipe(name)
    train = recipe.train
    found = (train.epochs, train.learning_rate, train.schedule, train.weight_decay, recipe.model["dropout"])
    assert found == expected
    assert (train.batch_size, train.warmup_steps, train.betas) == (4096, 10_000, (0.9, 0.999))
    assert train.clip_norm == (1.0 if name.endswith("imagenet") else 0.0)


def test_the_papers_fine_tuning_is_a_recipe():
    recipe = load_recipe("table4-cifar10")
    train = recipe.train
    assert (train.steps, train.batch_size, train.optimiser, train.momentum) == (10_000, 512, "sgd", 0.9)
    assert (train.weight_decay, train.clip_norm, train.schedule) == (0.0, 1.0, "cosine")
    assert recipe.data.image_size == 384


@pytest.mark.parametrize("name", [*recipe_names(), *paper_names()])
def test_every_recipe_builds_a_model_of_its_own_data(name, tmp_path):
    recipe = load_recipe(name)
    shapes = {"digits": (1, 8, 8), "mnist": (1, 28, 28), "cifar10": (3, 32, 32)}
    side = recipe.data.image_size
    shape = (3, side, side) if side else shapes[recipe.data.name]
    names = tuple(f"kind {number}" for number in range(10))
    data = types.SimpleNamespace(image_shape=shape, num_classes=10, class_names=names)
    if recipe.weights:  # Table 4 fine-tunes whatever was pre-trained: here a tiny model of 16-pixel patches
        start = ViTConfig(32, 16, dim=8, depth=1, heads=1, mlp_dim=8, num_classes=3)
        if "dim" in recipe.model:  # a run that goes on from another of the same model
            start = replace(recipe.model_config(data), num_classes=10 if recipe.keep_head else 3)
        save_checkpoint(tmp_path / "start.safetensors", VisionTransformer(start))
        recipe = replace(recipe, weights=str(tmp_path / "start.safetensors"))
    with torch.device("meta" if not recipe.weights else "cpu"):
        config = recipe.build(data).config
    assert (config.image_shape, config.num_classes) == (shape[1:], 10)


def test_a_recipe_without_a_result_says_that_it_was_not_run():
    folder = resources.files("vit_lab")
    for name in recipe_names():
        ran = folder.joinpath("results", f"{name}.json").is_file()
        text = folder.joinpath("recipes", f"{name}.toml").read_text("utf-8")
        assert ran != ("Not yet run" in text), f"{name}: says 'Not yet run' exactly while no result ships"


def test_a_recipe_that_whitens_begins_so_and_says_so(tmp_path):
    plain = load_recipe(write(tmp_path, DIGITS + "[model]\npatch_size = 2\ndim = 16\ndepth = 1\nheads = 2"))
    white, data = replace(plain, whiten=True), open_dataset(plain.data)
    images = torch.cat([batch for batch, _ in data.batches("train")])

    def spread(recipe):
        outputs = recipe.seeded(data).patch_embedding(images).flatten(0, 1).detach()
        return torch.linalg.eigvalsh(outputs.T.cov())[-4:]  # a patch has four values

    assert spread(white).max() / spread(white).min() < 1.2 < spread(plain).max() / spread(plain).min()
    assert (white.start(), plain.start()) == ({"start": {"whiten": True}}, {})


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("whiten = true\nweights = 'cifar10'\n[data]\nname = 'cifar10'", "with weights to begin from"),
        (
            "whiten = true\n[data]\nname = 'digits'\n[model]\npatch_size = 2\nstem = { kind = 'conv' }",
            "'conv' stem",
        ),
    ],
)
def test_what_cannot_be_whitened_is_refused(tmp_path, text, message):
    def begun():
        recipe = load_recipe(write(tmp_path, text))
        return recipe.seeded(open_dataset(recipe.data))

    with pytest.raises(InputError, match=f"whiten = True: expected false .*{message}"):
        begun()


def test_a_recipe_that_whitens_can_begin_from_weights():
    words = ["train", "--recipe", "cifar10-half-hour-remedies", "--weights", "cifar10"]
    recipe, _ = chosen_recipe(build_parser().parse_args(words))
    assert (recipe.weights, recipe.whiten) == ("cifar10", False)


@pytest.mark.parametrize("seed", [0, 7])
def test_a_recipes_seed_draws_its_first_weights(digits, seed):
    recipe = load_recipe("digits").with_seed(seed)
    torch.manual_seed(seed)
    expected = VisionTransformer(recipe.model_config(digits)).state_dict()
    torch.manual_seed(99)
    found = recipe.seeded(digits).state_dict()
    assert all(torch.equal(found[name], values) for name, values in expected.items())
