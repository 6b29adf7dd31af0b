"""What every test may use: small models with nothing at zero, a few scanned digits, no window for figures."""

import contextlib
from dataclasses import replace

import matplotlib
import numpy as np
import pytest
import torch
from PIL import Image
from torch._subclasses.fake_tensor import FakeTensorMode

from vit_classroom.checks.report import randomise
from vit_from_scratch import VisionTransformer, ViTConfig
from vit_from_scratch.data import Augmentation, load_dataset
from vit_from_scratch.training import TrainConfig
from vit_from_scratch.training.pretraining import TASKS

matplotlib.use("Agg")
torch.set_num_threads(1)  # on models this small several threads only wait for each other


@pytest.fixture(autouse=True)
def _seed():
    torch.manual_seed(0)


@pytest.fixture
def small_config():
    return ViTConfig(image_size=(12, 16), patch_size=4, dim=24, depth=3, heads=3, mlp_dim=40, num_classes=7)


@pytest.fixture
def small_model(small_config):
    """Every parameter is random, the head and the class token too: no zero can hide a mistake."""
    model = VisionTransformer(small_config)
    randomise(model)
    return model


@pytest.fixture(scope="session")
def digits():
    return load_dataset("digits")


@pytest.fixture
def few_digits(digits):
    """50 training, 20 validation and 20 test scans."""
    return replace(
        digits,
        train_images=digits.train_images[:50],
        train_labels=digits.train_labels[:50],
        validation_images=digits.validation_images[:20],
        validation_labels=digits.validation_labels[:20],
        test_images=digits.test_images[:20],
        test_labels=digits.test_labels[:20],
    )


@pytest.fixture
def save_photo():
    """A function that writes a photo of random pixels, or of one colour, and returns its path."""

    def save(path, size=(12, 10), seed=None, mode="RGB", colour=(90, 60, 30)):
        path.parent.mkdir(parents=True, exist_ok=True)
        picture = Image.new("RGB", size, colour)
        if seed is not None:
            pixels = np.random.default_rng(seed).integers(256, size=(size[1], size[0], 3), dtype=np.uint8)
            picture = Image.fromarray(pixels)
        picture.convert(mode).save(path)
        return path

    return save


@pytest.fixture
def make_model():
    """A function that builds the same small ViT each time; dropout makes it use the random generator."""

    def build(seed: int = 0, dropout: float = 0.1, **fields):
        torch.manual_seed(seed)
        data = {"image_size": 8, "channels": 1, "num_classes": 10}
        sizes = {"patch_size": 4, "dim": 16, "depth": 2, "heads": 2, "mlp_dim": 32, "dropout": dropout}
        return VisionTransformer(ViTConfig(**(data | sizes | fields)))

    return build


@pytest.fixture
def short():
    """Four epochs with every source of randomness in use."""
    return TrainConfig(
        epochs=4, batch_size=16, warmup_steps=2, augmentation=Augmentation(shift=1, rotation=5.0)
    )


@pytest.fixture
def elsewhere():
    """A context with a device that stands for a GPU on a machine without one.

    Its tensors have shapes and no numbers. To join one of them with a tensor of the CPU is an error, as on a
    GPU, and so is asking for a number.
    """

    @contextlib.contextmanager
    def other_device():
        with FakeTensorMode(allow_non_fake_inputs=True):
            yield torch.device("meta")

    return other_device


def gradients(count: int) -> torch.Tensor:
    """Images (count, 3, 16, 16) of bytes: colours that run smoothly from corner to corner."""
    corners = torch.rand(count, 3, 2, 2, generator=torch.Generator().manual_seed(5))
    smooth = torch.nn.functional.interpolate(corners, (16, 16), mode="bilinear", align_corners=True)
    return (255 * smooth).round().byte()


@pytest.fixture
def colours(digits):
    """80 training and 20 validation images of smooth colours, 16 x 16, with labels that say nothing."""
    images, labels = gradients(120), torch.zeros(120, dtype=torch.long)
    parts = {"train": slice(0, 80), "validation": slice(80, 100), "test": slice(100, 120)}
    tensors = {f"{part}_images": images[place] for part, place in parts.items()}
    tensors |= {f"{part}_labels": labels[place] for part, place in parts.items()}
    return replace(digits, **tensors)


@pytest.fixture
def make_task():
    """A function that builds the same small self-supervised model each time: sixteen patches an image."""

    def build(objective: str = "masked-patches", seed: int = 0, task=None, **fields):
        torch.manual_seed(seed)
        images = {"image_size": 16, "patch_size": 4, "num_classes": 10}
        sizes = {"dim": 16, "depth": 2, "heads": 2, "mlp_dim": 32, "dropout": 0.1}
        vit = VisionTransformer(ViTConfig(**(images | sizes | fields)))
        small = {"decoder_dim": 8, "decoder_depth": 1, "decoder_heads": 2}
        return TASKS[objective](vit, **((small if objective == "masked-pixels" else {}) | (task or {})))

    return build
