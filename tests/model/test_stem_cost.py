"""The list of a stem's convolutions is what its module runs."""

import pytest
import torch
from torch import nn

from vit_from_scratch import ViTConfig
from vit_from_scratch.model.hybrid import StandardisedConv
from vit_from_scratch.model.stem_config import StemConfig
from vit_from_scratch.model.stem_cost import stem_layers, stem_width
from vit_from_scratch.model.variants import choose_stem

STEMS = {
    "conv": (StemConfig("conv", width=4), 4),
    "conv of patches of one pixel": (StemConfig("conv", width=4), 1),
    "resnet": (StemConfig("resnet", width=8, layers=(2, 3, 1), root_stride=1), 4),
    "resnet of one stage": (StemConfig("resnet", width=8, layers=(1,), root_stride=1), 1),
    "resnet with the large root": (StemConfig("resnet", width=8, layers=(1, 2)), 8),
}


@pytest.mark.parametrize("kind", STEMS)
def test_a_stem_runs_the_convolutions_that_are_listed(kind):
    stem, patch_size = STEMS[kind]
    config = ViTConfig((16, 32), patch_size, dim=12, depth=1, heads=1, mlp_dim=8, stem=stem)
    ran = []

    def look(layer, inputs, output):
        if layer.kernel_size[0] > 1 and isinstance(layer, StandardisedConv):
            padded = layer.padded(inputs[0])[0].numel()
        else:
            padded = inputs[0][0].numel()
        places = tuple(output.shape[2:])
        weights, kernel, stride = layer.weight.numel(), layer.kernel_size[0], layer.stride[0]
        ran.append((kernel, stride, places, weights, output[0].numel(), padded))

    with torch.device("meta"):
        module = choose_stem(config)
        for layer in module.modules():
            if isinstance(layer, nn.Conv2d):
                layer.register_forward_hook(look)
        module(torch.zeros(1, 3, 16, 32))
    listed = [
        (c.kernel, c.stride, c.places, c.weights, c.outputs, c.padded_inputs) for c in stem_layers(config)
    ]
    if stem.kind == "conv":
        *ran, projection = ran
        assert projection[3] == stem_width(config) * config.dim
        ran, listed = [row[:-1] for row in ran], [row[:-1] for row in listed]  # torch pads on its own
    else:
        assert module.projection.in_features == stem_width(config)
    assert sorted(ran) == sorted(listed)


def test_a_plain_vit_has_no_convolutions():
    config = ViTConfig(32, 4, dim=12, depth=1, heads=1, mlp_dim=8)
    assert stem_layers(config) == []
    assert stem_width(config) == 48
