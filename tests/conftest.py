"""What every test may use: small models with nothing at zero, and no window for figures."""

import matplotlib
import pytest
import torch

from vit_from_scratch import VisionTransformer, ViTConfig
from vit_from_scratch.checks.report import randomise

matplotlib.use("Agg")


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
