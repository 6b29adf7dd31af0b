"""The ResNets that the paper compares with: BiT's, with pre-activation units (section 4.1, Table 6).

BiT (Kolesnikov et al., 2020) takes the ResNet with norm and ReLU *before* each convolution (He et al., 2016),
GroupNorm in place of BatchNorm, and standardised filters. A width factor multiplies all channels: 152x2 has
152 layers and twice the usual width. The hybrids' ResNet has its norms behind the convolutions instead: see
`vit_from_scratch.model.hybrid`, from which the layers come.
"""

import re
from functools import partial

import torch.nn.functional as F
from torch import Tensor, nn

from vit_from_scratch.errors import InputError, shown
from vit_from_scratch.inputs import require_image_type, require_tensor
from vit_from_scratch.model.hybrid import GROUPS, StandardisedConv, residual_stages
from vit_from_scratch.model.stem_config import ResNetConfig
from vit_from_scratch.settings import require

#: Residual units in each stage, by the number of layers.
DEPTHS: dict[int, tuple[int, ...]] = {
    50: (3, 4, 6, 3),
    101: (3, 4, 23, 3),
    152: (3, 8, 36, 3),
    200: (3, 24, 36, 3),
}

LARGEST_FACTOR = 16


class EvenlyPaddedConv(StandardisedConv):
    """A standardised convolution with as many zeros on one side as on the other, as in BiT's own code."""

    def padded(self, input: Tensor) -> Tensor:
        """Return the input with kernel // 2 zeros on each side."""
        margin = self.kernel_size[0] // 2
        return F.pad(input, [margin] * 4) if margin else input


class PreActivationBottleneck(nn.Module):
    """A residual unit: norm and ReLU come before each of the convolutions, and nothing follows the sum.

    A shortcut that changes the shape reads the first ReLU's result, any other the unit's input.

    Args:
        config: for the eps of convolutions and norms.
        channels: input channels.
        width: the narrow width; the output has four times as many channels.
        stride: of the 3 x 3 convolution.
    """

    def __init__(self, config: ResNetConfig, channels: int, width: int, stride: int) -> None:
        super().__init__()
        self.norm1, self.conv1 = _norm(config, channels), _conv(config, channels, width, 1)
        self.norm2, self.conv2 = _norm(config, width), _conv(config, width, width, 3, stride)
        self.norm3, self.conv3 = _norm(config, width), _conv(config, width, 4 * width, 1)
        changes = stride != 1 or channels != 4 * width
        self.shortcut = _conv(config, channels, 4 * width, 1, stride) if changes else None

    def forward(self, features: Tensor) -> Tensor:
        """Map (B, channels, H, W) to (B, 4 width, H / stride, W / stride)."""
        active = F.relu(self.norm1(features))
        past = features if self.shortcut is None else self.shortcut(active)
        inner = self.conv1(active)
        inner = self.conv2(F.relu(self.norm2(inner)))
        inner = self.conv3(F.relu(self.norm3(inner)))
        return past + inner


class ResNet(nn.Module):
    """BiT's ResNet: root, stages of units, a last norm and ReLU, the mean over all places, a linear head.

    Args:
        config: stages, width, root and the eps.
        channels: channels C of the images.
        num_classes: classes K.

    Raises:
        InputError: for less than one channel or class.
    """

    def __init__(self, config: ResNetConfig, channels: int = 3, num_classes: int = 1000) -> None:
        super().__init__()
        require(channels >= 1, "channels", channels, "at least 1")
        require(num_classes >= 1, "num_classes", num_classes, "at least 1")
        self.channels = channels
        self.large_root = config.root_stride == 4
        self.root = _conv(config, channels, config.width, *((7, 2) if self.large_root else (3, 1)))
        self.stages = residual_stages(config, partial(PreActivationBottleneck, config))
        self.norm = _norm(config, config.channels)
        self.head = nn.Linear(config.channels, num_classes)
        nn.init.zeros_(self.head.weight)
        nn.init.zeros_(self.head.bias)

    def features(self, images: Tensor) -> Tensor:
        """Map images (B, C, H, W) to what the head reads, (B, D') with 32 width channels after 4 stages."""
        maps = self.root(images)
        if self.large_root:
            maps = F.max_pool2d(F.pad(maps, [1] * 4), 3, 2)  # with zeros around, as in BiT's own code
        for stage in self.stages:
            maps = stage(maps)
        return F.relu(self.norm(maps)).mean(dim=(2, 3))

    def forward(self, images: Tensor) -> Tensor:
        """Classify images.

        Args:
            images: (B, C, H, W) floats of any size.

        Returns:
            Logits (B, K).

        Raises:
            InputError: for anything but images of the weights' type, of four axes and C channels.
        """
        require_tensor(images, "images", f"(B, {self.channels}, H, W)")
        if images.ndim != 4 or images.shape[1] != self.channels:
            raise InputError(
                f"images of shape {tuple(images.shape)}: expected (B, {self.channels}, H, W), which the "
                "model was built for; convert the images, or build the model for theirs."
            )
        require_image_type(images, self.head.weight)
        return self.head(self.features(images))


def resnet_config(name: str) -> ResNetConfig:
    """Turn a name such as ``"50x1"`` or ``"ResNet152x2"`` into stages and a width.

    Args:
        name: layers (50, 101, 152 or 200), an x and the width factor; "R" or "ResNet" may stand before.

    Raises:
        InputError: for a name that is none of these.
    """
    match = re.fullmatch(r"(?:R|ResNet)?(\d{1,4})x(\d{1,2})", str(name))
    if match is None or int(match[1]) not in DEPTHS or not 1 <= int(match[2]) <= LARGEST_FACTOR:
        raise InputError(
            f"unknown ResNet {shown(name)}: expected {', '.join(map(str, DEPTHS))} layers, an x and a width "
            f"factor from 1 to {LARGEST_FACTOR}, for instance '50x1' or 'ResNet152x2'."
        )
    layers, width = DEPTHS[int(match[1])], 64 * int(match[2])
    return ResNetConfig(width=width, layers=layers, norm_eps=1e-5, conv_eps=1e-10, eps_on_variance=True)


def build_resnet(name: str, num_classes: int = 1000, channels: int = 3) -> ResNet:
    """Build one of BiT's ResNets by its name in Table 6, with BiT's eps.

    Args:
        name: as for :func:`resnet_config`, for instance ``"ResNet50x1"``.
        num_classes: classes K.
        channels: channels C of the images.

    Raises:
        InputError: for an unknown name, or no classes or channels.
    """
    return ResNet(resnet_config(name), channels, num_classes)


def _conv(
    config: ResNetConfig, channels: int, features: int, kernel: int, stride: int = 1
) -> EvenlyPaddedConv:
    return EvenlyPaddedConv(channels, features, kernel, stride, config.conv_eps, config.eps_on_variance)


def _norm(config: ResNetConfig, channels: int) -> nn.GroupNorm:
    return nn.GroupNorm(min(GROUPS, channels), channels, eps=config.norm_eps)
