"""The ResNets that the paper compares with: BiT's, with pre-activation units (section 4.1, Table 6).

BiT (Kolesnikov et al., 2020) has norm and ReLU *before* each convolution (He et al., 2016b), GroupNorm in
place of BatchNorm, and standardised filters. A width factor multiplies all channels: 152x2 has 152 layers and
twice the usual width. The hybrids' ResNet, from which the layers come, has its norms behind the convolutions.
"""

import re
from functools import partial

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from vit_from_scratch.errors import InputError, shown
from vit_from_scratch.model.cost import counted_flops
from vit_from_scratch.model.hybrid import StandardisedConv, norm, residual_stages
from vit_from_scratch.model.stem_config import ResNetConfig

#: Residual units in each stage, by the number of layers.
DEPTHS = {50: (3, 4, 6, 3), 101: (3, 4, 23, 3), 152: (3, 8, 36, 3), 200: (3, 24, 36, 3)}

LARGEST_FACTOR = 16  # of the width


class EvenlyPaddedConv(StandardisedConv):
    """A standardised convolution with as many zeros on one side as on the other, as in BiT's own code."""

    def padded(self, input: Tensor) -> Tensor:
        """Return the input with kernel // 2 zeros on each side."""
        margin = self.kernel_size[0] // 2
        return F.pad(input, [margin] * 4) if margin else input


class PreActivationBottleneck(nn.Module):
    """A residual unit: norm and ReLU come before each of the convolutions, and nothing follows the sum.

    A shortcut that changes the shape reads the first ReLU's result, any other the unit's input. Arguments as
    in :class:`vit_from_scratch.model.hybrid.Bottleneck`.
    """

    def __init__(self, config: ResNetConfig, channels: int, width: int, stride: int) -> None:
        super().__init__()
        conv = partial(EvenlyPaddedConv, config)
        self.norm1, self.conv1 = norm(config, channels), conv(channels, width, 1)
        self.norm2, self.conv2 = norm(config, width), conv(width, width, 3, stride)
        self.norm3, self.conv3 = norm(config, width), conv(width, 4 * width, 1)
        changes = stride != 1 or channels != 4 * width
        self.shortcut = conv(channels, 4 * width, 1, stride) if changes else None

    def forward(self, features: Tensor) -> Tensor:
        """Map (B, channels, H, W) to (B, 4 width, H / stride, W / stride)."""
        active = F.relu(self.norm1(features))
        past = features if self.shortcut is None else self.shortcut(active)
        inner = self.conv1(active)
        inner = self.conv2(F.relu(self.norm2(inner)))
        inner = self.conv3(F.relu(self.norm3(inner)))
        return past + inner


class ResNet(nn.Module):
    """BiT's ResNet: the large root, stages of units, a last norm and ReLU, the mean of all places, a head."""

    def __init__(self, config: ResNetConfig, num_classes: int = 1000) -> None:
        super().__init__()
        self.root = EvenlyPaddedConv(config, 3, config.width, 7, 2)
        self.stages = residual_stages(config, PreActivationBottleneck)
        self.norm = norm(config, config.channels)
        self.head = nn.Linear(config.channels, num_classes)
        nn.init.zeros_(self.head.weight)
        nn.init.zeros_(self.head.bias)

    def forward(self, images: Tensor) -> Tensor:
        """Classify images (B, 3, H, W) of any size: logits (B, K)."""
        maps = F.pad(self.root(images), [1] * 4)  # with zeros around, as in BiT's own code
        maps = F.max_pool2d(maps, 3, 2)
        for stage in self.stages:
            maps = stage(maps)
        return self.head(F.relu(self.norm(maps)).mean(dim=(2, 3)))


def build_resnet(name: str, num_classes: int = 1000) -> ResNet:
    """Build one of BiT's ResNets, with BiT's eps, by its name in Table 6, such as "ResNet152x2" or "50x1".

    Raises:
        InputError: other layers than 50, 101, 152 or 200, or a width factor above 16.
    """
    match = re.fullmatch(r"(?:R|ResNet)?(\d{1,4})x(\d{1,2})", str(name))
    if match is None or int(match[1]) not in DEPTHS or not 1 <= int(match[2]) <= LARGEST_FACTOR:
        raise InputError(
            f"unknown ResNet {shown(name)}: expected {', '.join(map(str, DEPTHS))} layers, an x and a width "
            f"factor from 1 to {LARGEST_FACTOR}, for instance '50x1' or 'ResNet152x2'."
        )
    layers, width = DEPTHS[int(match[1])], 64 * int(match[2])
    config = ResNetConfig(width=width, layers=layers, norm_eps=1e-5, conv_eps=1e-10, eps_on_variance=True)
    return ResNet(config, num_classes=num_classes)


def padding_flops(model: nn.Module, image: tuple[int, int, int]) -> int:
    """Count those operations of `counted_flops` that only multiply the zeros around a feature map.

    In the `StandardisedConv` layers of a ResNet at 224 pixels that is 3 to 4%; a compiler can leave it out.
    """
    wasted = 0

    def look(layer: nn.Module, inputs: tuple[Tensor, ...]) -> None:
        nonlocal wasted
        if isinstance(layer, StandardisedConv):
            # Ones under filters of ones: each place of the result says how many pixels its filter sees.
            ones = torch.ones(1, 1, *inputs[0].shape[2:], device="cpu")
            window = torch.ones(1, 1, *layer.kernel_size, device="cpu")
            seen = F.conv2d(layer.padded(ones), window, stride=layer.stride)
            zeros = seen.numel() * window.numel() - int(seen.sum(dtype=torch.float64))
            wasted += 2 * zeros * layer.in_channels * layer.out_channels

    hooks = [layer.register_forward_pre_hook(look) for layer in model.modules()]
    try:
        counted_flops(model, image)
    finally:
        for hook in hooks:
            hook.remove()
    return wasted
