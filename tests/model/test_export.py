"""An exported model takes batches of any size."""

import warnings

import pytest
import torch
from torch.export import Dim, export

from vit_classroom.checks.report import randomise
from vit_from_scratch import VisionTransformer, ViTConfig

KINDS = {
    "class token": {},
    "average pooling": {"class_token": False, "pool": "gap"},
    "conv stem, local MLP, fixed positions": {
        "stem": {"kind": "conv", "width": 4},
        "mlp": "local",
        "position": "sincos_2d",
    },
    "hybrid": {"stem": {"kind": "resnet", "width": 8, "layers": (1, 1, 1), "root_stride": 1}},
}


@pytest.fixture(params=KINDS.values(), ids=KINDS)
def model(request):
    sizes = {
        "image_size": 16,
        "patch_size": 4,
        "dim": 16,
        "depth": 1,
        "heads": 2,
        "mlp_dim": 24,
        "num_classes": 5,
    }
    built = VisionTransformer(ViTConfig.from_dict(sizes | request.param))
    randomise(built)
    return built.eval()


def test_torch_export_keeps_the_batch_open(model):
    program = export(model, (torch.randn(3, 3, 16, 16),), dynamic_shapes=({0: Dim("batch")},))
    for batch in (2, 7):
        images = torch.randn(batch, 3, 16, 16)
        torch.testing.assert_close(program.module()(images), model(images))


def test_torch_jit_trace_keeps_the_batch_open(model):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that shapes are looked at, and that torch has newer ways
        traced = torch.jit.trace(model, torch.randn(3, 3, 16, 16))
    for batch in (1, 7):
        images = torch.randn(batch, 3, 16, 16)
        torch.testing.assert_close(traced(images), model(images))
