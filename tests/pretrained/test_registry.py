import hashlib
from importlib import resources

import pytest
import torch

from vit_from_scratch import InputError
from vit_from_scratch.experiments.recipes import load_recipe, load_result
from vit_from_scratch.pretrained import class_names, input_scaling, load_pretrained

WEIGHTS = resources.files("vit_from_scratch").joinpath("weights")
SHIPPED = {"cifar10": "cifar10-30min-cpu-plain", "tiny-imagenet": "tiny-imagenet-plain"}
"""The shipped models and their recipes."""


@pytest.mark.parametrize(
    ("name", "shape"), [("cifar10", (32, 3, 10)), ("tiny-imagenet", (64, 3, 200))], ids=str
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
        "learned",
        "patch",
        "dense",
    )
    assert not model.training
    assert {p.dtype for p in model.parameters()} == {torch.float32}


@pytest.mark.parametrize("name", SHIPPED)
def test_the_shipped_weights_are_those_that_were_measured(name):
    measured = load_result(f"{name}_weights")
    content = WEIGHTS.joinpath(f"{name}.safetensors").read_bytes()
    assert len(content) == measured["bytes"] <= 12_000_000
    assert hashlib.sha256(content).hexdigest() == measured["sha256"]


@pytest.mark.parametrize("name", SHIPPED)
def test_rounding_to_half_precision_cost_no_accuracy(name):
    measured, run = load_result(f"{name}_weights"), load_result(SHIPPED[name])
    assert measured["run"]["test_accuracy"] == run["test_accuracy_mean"]
    assert measured["test_accuracy"] == pytest.approx(run["test_accuracy_mean"], abs=1e-3)


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
