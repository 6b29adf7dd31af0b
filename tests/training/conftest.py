"""What the tests of training without labels share: colour images with something to learn, and tiny models."""

from dataclasses import replace

import pytest
import torch

from vit_from_scratch import VisionTransformer, ViTConfig
from vit_from_scratch.training import MaskedAutoencoder, MaskedPatchPrediction

TASKS = {task.objective: task for task in (MaskedPatchPrediction, MaskedAutoencoder)}


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
