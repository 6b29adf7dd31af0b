"""Small models whose every option the inspection must cope with."""

import pytest
import torch

from vit_from_scratch import VisionTransformer, ViTConfig

KINDS = {
    "class token": {},
    "average pooling": {"class_token": False, "pool": "gap"},
    "class token kept, average pooling": {"pool": "gap"},
    "conv stem, local MLP": {"stem": {"kind": "conv", "width": 4}, "mlp": "local"},
}


@pytest.fixture(params=KINDS.values(), ids=KINDS)
def model(request):
    torch.manual_seed(0)
    config = ViTConfig((16, 24), 4, dim=16, depth=3, heads=2, mlp_dim=24, num_classes=5, **request.param)
    built = VisionTransformer(config)
    for parameter in built.parameters():
        parameter.data += 0.1 * torch.randn_like(parameter)
    return built.eval()


@pytest.fixture
def images():
    return torch.randn(4, 3, 16, 24, generator=torch.Generator().manual_seed(1))
