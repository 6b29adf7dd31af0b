"""Chapter 7: the hybrid's stem, a ResNet whose feature map takes the image's place (section 3.1)."""

import math
from collections.abc import Callable
from functools import partial

import torch.nn.functional as F
from einops import rearrange
from torch import Tensor, nn

from vit_from_scratch.model.config import ViTConfig
from vit_from_scratch.model.patches import lecun_normal_
from vit_from_scratch.model.stem_config import ResNetConfig

GROUPS = 32  # of every GroupNorm; a layer with fewer channels has one group a channel (InstanceNorm)


def same_padding(images: Tensor, kernel: int, stride: int, value: float = 0.0) -> Tensor:
    """Pad (B, C, H, W) so that a strided window yields ceil(size / stride) places: the "SAME" of JAX.

    An odd total puts the extra row and column at the end: a 7 x 7 kernel with stride 2 on 224 pixels gets 2
    before and 3 after. ``value`` is what comes in at the border.
    """
    amounts = []
    for size in (images.shape[-1], images.shape[-2]):  # F.pad begins with the last axis
        places = math.ceil(size / stride)
        total = max((places - 1) * stride + kernel - size, 0)
        amounts += [total // 2, total - total // 2]
    return F.pad(images, amounts, value=value) if any(amounts) else images


def norm(config: ResNetConfig, channels: int) -> nn.GroupNorm:
    """Return a GroupNorm with the configuration's eps."""
    return nn.GroupNorm(min(GROUPS, channels), channels, eps=config.norm_eps)


class StandardisedConv(nn.Conv2d):
    """A convolution without bias whose filters have mean 0 and standard deviation 1 each time it is applied.

    Weight standardisation (Qiao et al., 2019), which lets GroupNorm take BatchNorm's place. ``conv_eps`` is
    added to the standard deviation as in the reference code, or with ``eps_on_variance`` to the variance as
    in timm.
    """

    def __init__(
        self, config: ResNetConfig, channels: int, features: int, kernel: int, stride: int = 1
    ) -> None:
        super().__init__(channels, features, kernel, stride, bias=False)
        self.eps, self.eps_on_variance = config.conv_eps, config.eps_on_variance

    def reset_parameters(self) -> None:
        """Draw LeCun-normal filters, as the reference code does."""
        drawn = lecun_normal_(self.weight.detach().flatten(1))  # a copy, if channels come last in memory
        self.weight.detach().copy_(drawn.view(self.weight.shape))

    def standardised(self) -> Tensor:
        """The filters as they are applied, (features, channels, kernel, kernel)."""
        weight = self.weight - self.weight.mean(dim=(1, 2, 3), keepdim=True)
        variance = weight.square().mean(dim=(1, 2, 3), keepdim=True)
        if self.eps_on_variance:
            return weight / (variance + self.eps).sqrt()
        return weight / (variance.sqrt() + self.eps)

    def padded(self, input: Tensor) -> Tensor:
        """Return the input with the zeros around it that the filters also run over."""
        return same_padding(input, self.kernel_size[0], self.stride[0])

    def forward(self, input: Tensor) -> Tensor:
        """Map (B, channels, H, W) to (B, features, ceil(H / stride), ceil(W / stride))."""
        return F.conv2d(self.padded(input), self.standardised(), stride=self.stride)


class Bottleneck(nn.Module):
    """A residual unit: 1 x 1 to a narrow width, 3 x 3, 1 x 1 back to four times that; ReLU after the sum.

    The 3 x 3 convolution has the stride; `config` has the eps of convolutions and norms.
    """

    def __init__(self, config: ResNetConfig, channels: int, width: int, stride: int) -> None:
        super().__init__()
        conv = partial(StandardisedConv, config)
        self.conv1, self.norm1 = conv(channels, width, 1), norm(config, width)
        self.conv2, self.norm2 = conv(width, width, 3, stride), norm(config, width)
        self.conv3, self.norm3 = conv(width, 4 * width, 1), norm(config, 4 * width)
        nn.init.zeros_(self.norm3.weight)  # a new unit begins as the identity
        changes = stride != 1 or channels != 4 * width
        self.shortcut = conv(channels, 4 * width, 1, stride) if changes else nn.Identity()
        self.shortcut_norm = norm(config, 4 * width) if changes else nn.Identity()

    def forward(self, features: Tensor) -> Tensor:
        """Map (B, channels, H, W) to (B, 4 width, H / stride, W / stride)."""
        inner = F.relu(self.norm1(self.conv1(features)))
        inner = F.relu(self.norm2(self.conv2(inner)))
        inner = self.norm3(self.conv3(inner))
        return F.relu(self.shortcut_norm(self.shortcut(features)) + inner)


def residual_stages(config: ResNetConfig, unit: Callable[..., nn.Module]) -> nn.ModuleList:
    """Build the stages of a ResNet; each after the first begins by halving height and width."""
    stages = nn.ModuleList()
    channels = config.width
    for stage, units in enumerate(config.layers):
        width = config.width * 2**stage
        rest = (unit(config, 4 * width, width, 1) for _ in range(units - 1))
        stages.append(nn.Sequential(unit(config, channels, width, 2 if stage else 1), *rest))
        channels = 4 * width
    return stages


class ResNetStem(nn.Module):
    """A ResNet without its head; each place of its last feature map becomes a token.

    For 224 px the paper's R50 + ViT-B/16 has stages of (3, 4, 9) units; the unmodified (3, 4, 6, 3)
    has stride 32. The root divides by 4 (a 7 x 7 convolution and a max pool), or by 1 for small images (a
    3 x 3 convolution alone); every stage after the first by 2. The product is the model's patch size.

    Args:
        config: uses ``stem``, ``channels`` and ``dim``.
    """

    def __init__(self, config: ViTConfig) -> None:
        super().__init__()
        stem = config.stem
        self.large_root = stem.root_stride == 4
        kernel, stride = (7, 2) if self.large_root else (3, 1)
        self.root = StandardisedConv(stem, config.channels, stem.width, kernel, stride)
        self.root_norm = norm(stem, stem.width)
        self.stages = residual_stages(stem, Bottleneck)
        self.projection = nn.Linear(stem.channels, config.dim)  # a 1 x 1 patch of the feature map
        lecun_normal_(self.projection.weight)
        nn.init.zeros_(self.projection.bias)

    def feature_maps(self, images: Tensor) -> list[Tensor]:
        """Map images (B, C, H, W) to the feature maps after the root (before its pooling) and each stage."""
        maps = [F.relu(self.root_norm(self.root(images)))]
        features = maps[0]
        if self.large_root:
            features = F.max_pool2d(same_padding(features, 3, 2, float("-inf")), 3, 2)
        for stage in self.stages:
            features = stage(features)
            maps.append(features)
        return maps

    def forward(self, images: Tensor) -> Tensor:
        """Map images (B, C, H, W) to embeddings (B, N, D)."""
        return self.projection(rearrange(self.feature_maps(images)[-1], "b c gh gw -> b (gh gw) c"))
