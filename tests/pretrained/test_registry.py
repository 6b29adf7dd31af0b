import hashlib
from importlib import resources

import pytest
import torch

from vit_from_scratch import InputError
from vit_from_scratch.pretrained import (
    class_names,
    input_scaling,
    load_pretrained,
    load_self_supervised,
    releases,
)
from vit_lab.cli import main
from vit_lab.experiments.recipes import load_recipe, load_result
from vit_lab.runs.trained_models import open_model

WEIGHTS = resources.files("vit_from_scratch").joinpath("weights")
SHIPPED = {
    "cifar10": "cifar10-30min-cpu-plain",
    "mnist": "mnist",
    "tiny-imagenet": "tiny-imagenet-finish",
}
"""The shipped models and their recipes."""
MASKED = [name for name, objective in releases.SHIPPED.items() if objective != "classes"]
"""Those that learned without labels; each has a recipe of its own name."""


@pytest.mark.parametrize(
    ("name", "shape"),
    [("cifar10", (32, 3, 10)), ("mnist", (28, 1, 10)), ("tiny-imagenet", (64, 3, 200))],
    ids=str,
)
def test_the_shipped_model_is_the_recipes(name, shape):
    model = load_pretrained(name)
    recipe = load_recipe(SHIPPED[name]).model
    config = model.config
    assert {key: getattr(config, key) for key in recipe} == recipe
    assert (config.image_size, config.channels, config.num_classes) == shape
    assert len(set(class_names(name))) == config.num_classes
    assert (config.class_token, config.position, config.stem.kind, config.mlp) == (
        True,
        "sincos_2d" if name == "mnist" else "learned",
        "patch",
        "dense",
    )
    assert not model.training
    assert {p.dtype for p in model.parameters()} == {torch.float32}


@pytest.mark.parametrize("name", [*SHIPPED, *MASKED])
def test_the_shipped_weights_are_those_that_were_measured(name):
    measured = load_result(f"{name}_weights")
    content = WEIGHTS.joinpath(f"{name}.safetensors").read_bytes()
    assert len(content) == measured["bytes"] <= 12_000_000
    assert hashlib.sha256(content).hexdigest() == measured["sha256"]


def test_what_the_book_measured_on_the_shipped_model_is_that_models():
    shipped = open_model("tiny-imagenet").sha256
    assert load_result("larger_tiny_imagenet")["model_sha256"] == shipped
    assert load_result("features_tiny_imagenet")["model_sha256"] == {"tiny-imagenet": shipped}
    assert load_result("inspection_tiny_imagenet")["model_sha256"] == shipped
    unlabelled = {name: open_model(name).sha256 for name in MASKED}
    assert load_result("features_masked")["model_sha256"] == unlabelled
    assert load_result("masked_tiny_imagenet")["model_sha256"] == unlabelled


@pytest.mark.parametrize("name", SHIPPED)
def test_rounding_to_half_precision_cost_no_accuracy(name):
    measured, run = load_result(f"{name}_weights"), load_result(SHIPPED[name])
    assert measured["run"]["test_accuracy"] == run["test_accuracy_mean"]
    if "along" in measured:  # the mean of two runs' weights, which the run itself did not measure
        assert measured["validation_accuracy"] == pytest.approx(measured["along"]["0.5"], abs=1e-3)
    else:
        assert measured["test_accuracy"] == pytest.approx(run["test_accuracy_mean"], abs=1e-3)


def test_the_mean_of_two_runs_ships_since_held_out_photos_say_so():
    along = load_result("tiny-imagenet_weights")["along"]
    assert max(along, key=along.__getitem__) == "0.5"
    ends = [load_result(f"tiny-imagenet-{name}")["runs"][0]["curves"][-1] for name in ("longer", "finish")]
    found = [along[share] for share in ("0.0", "1.0")]
    assert found == pytest.approx([end["validation_accuracy"] for end in ends], abs=2e-3)


@pytest.mark.parametrize("name", MASKED)
def test_a_model_without_labels_ships_with_what_its_task_needs(name):
    task, vit = load_self_supervised(name), load_pretrained(name)
    recipe, run = load_recipe(name), load_result(name)
    assert task.objective == recipe.objective == run["objective"]
    assert {key: getattr(vit.config, key) for key in recipe.model} == recipe.model
    assert all(torch.equal(values, vit.state_dict()[key]) for key, values in task.vit.state_dict().items())
    assert not vit.training
    assert {p.dtype for p in task.parameters()} == {torch.float32}
    measured = load_result(f"{name}_weights")
    assert measured["run"]["validation_loss"] == run["validation_loss_mean"]
    assert measured["validation_loss"] == pytest.approx(run["validation_loss_mean"], abs=1e-3)


@pytest.mark.parametrize("name", MASKED)
def test_a_model_without_labels_names_no_classes(name, capsys):
    with pytest.raises(InputError, match=r"trained without labels.*knows no classes: expected a model"):
        class_names(name)
    assert main(["predict", "--weights", name, "photo.png"]) == 2
    said = capsys.readouterr().err
    assert f"--weights {name}: it was trained without labels" in said
    assert said.count("\n") == 1


def test_only_models_without_labels_have_a_task():
    with pytest.raises(
        InputError, match=r"unknown model without labels 'tiny-imagenet'.*'tiny-imagenet-masked-"
    ):
        load_self_supervised("tiny-imagenet")


def test_the_shipped_model_tells_the_photos_of_the_package_apart():
    """The chelsea photo in scikit-image shows a cat, and the model was trained on cats."""
    from skimage.data import chelsea
    from skimage.transform import resize

    square = chelsea()[:, 75:375]  # 300 x 300 pixels around the cat's face
    image = torch.from_numpy(resize(square, (32, 32), anti_aliasing=True)).permute(2, 0, 1).float()
    with torch.no_grad():
        logits = load_pretrained("cifar10")(input_scaling("cifar10")(255 * image[None]))
    first, second = (class_names("cifar10")[i] for i in logits[0].topk(2).indices)
    assert "cat" in (first, second)


def test_an_unknown_model_is_refused_with_the_known_ones():
    with pytest.raises(InputError, match=r"unknown pretrained model 'cifar'.*'cifar10'"):
        load_pretrained("cifar")
