"""What a ViT keeps beside a ResNet is what chapter 12 works out, and its speed is divided round by round."""

import beside_resnet
import pytest
import torch
from torch import nn

from vit_from_scratch import VisionTransformer, ViTConfig
from vit_from_scratch.model import attention
from vit_from_scratch.model.memory import activation_memory


@pytest.mark.parametrize("kind", ["fused", "explicit"])
def test_a_further_image_keeps_what_the_arithmetic_says_less_what_the_loss_keeps(kind, monkeypatch):
    monkeypatch.setattr(attention, "fused_is_faster", lambda q: kind == "fused")
    config = ViTConfig((32, 48), 4, dim=24, depth=3, heads=3, mlp_dim=40, num_classes=7)
    model, images = VisionTransformer(config), torch.rand(2, 3, 32, 48)
    found = beside_resnet.kept_bytes(model, images) - beside_resnet.kept_bytes(model, images[:1])
    loss = 4 * config.num_classes + 8  # probabilities and a label
    assert found == activation_memory(config, 1, attention=kind) - loss


def test_a_speed_is_divided_by_that_of_the_resnet_in_the_same_round(monkeypatch):
    models = {name: nn.Sequential(nn.Flatten(), nn.Linear(48, 2)) for name in (beside_resnet.RESNET, "ViT")}
    spent = iter([2.0, 1.0, 6.0, 2.0, 4.0, 8.0])  # the ResNet and the ViT, round by round
    monkeypatch.setattr(beside_resnet, "models", lambda side: models)
    monkeypatch.setattr(beside_resnet, "seconds", lambda *measured: next(spent))
    rows = beside_resnet.measured(4, 8, 3, 0.0, "cpu")
    assert rows["ViT"]["over_resnet"] == [2, 3, 0.5]
    assert rows["ViT"]["images_per_second"] == 8 / 2
    assert rows[beside_resnet.RESNET]["images_per_second"] == 8 / 4
