"""A few scanned digits and a ViT that trains on them in milliseconds."""

from dataclasses import replace

import pytest
import torch

from vit_from_scratch import VisionTransformer, ViTConfig
from vit_from_scratch.training import TrainConfig, load_dataset


@pytest.fixture(autouse=True)
def _one_thread():
    """On models this small several threads only wait for each other."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


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
    from vit_from_scratch.training import Augmentation

    return TrainConfig(
        epochs=4, batch_size=16, warmup_steps=2, augmentation=Augmentation(shift=1, rotation=5.0)
    )
