"""What the convolutions of a stem cost: each one as five numbers, and sums over them."""

import dataclasses
from itertools import pairwise

from vit_from_scratch.model.config import ViTConfig


@dataclasses.dataclass(frozen=True)
class Convolution:
    """A convolution of a stem, with the norm that follows it.

    Args:
        kernel: side of a filter.
        stride: step.
        before: input channels.
        after: filters.
        places: rows and columns of its output.
        relu: whether a ReLU of its own follows; the one behind a residual sum belongs to the unit's last
            convolution, none to its shortcut.
    """

    kernel: int
    stride: int
    before: int
    after: int
    places: tuple[int, int]
    relu: bool = True

    @property
    def weights(self) -> int:
        """Numbers in its filters."""
        return self.kernel**2 * self.before * self.after

    @property
    def outputs(self) -> int:
        """Values of its output for one image."""
        return self.places[0] * self.places[1] * self.after

    @property
    def padded_inputs(self) -> int:
        """Values of its input for one image with the zeros of "SAME" padding around."""
        rows, columns = (place * self.stride + max(self.kernel - self.stride, 0) for place in self.places)
        return rows * columns * self.before


def conv_stem_layers(config: ViTConfig) -> list[Convolution]:
    """Return the 3 x 3 convolutions of a convolutional stem, without its projection to the width D."""
    height, width = config.image_shape
    channels = [config.channels, *(config.stem.width * 2**i for i in range(config.patch_size.bit_length()))]
    return [
        Convolution(3, 2 if index else 1, before, after, (height >> index, width >> index))
        for index, (before, after) in enumerate(pairwise(channels))
    ]


def resnet_stem_layers(config: ViTConfig) -> list[Convolution]:
    """Return the convolutions of a hybrid's ResNet, without its projection to the width D."""
    height, width = config.image_shape
    channels, stride = config.stem.width, config.stem.root_stride
    root = (7, 2) if stride == 4 else (3, 1)
    layers = [Convolution(*root, config.channels, channels, (height // root[1], width // root[1]))]
    for stage, units in enumerate(config.stem.layers):
        narrow = config.stem.width * 2**stage
        for unit in range(units):
            step = 2 if stage and not unit else 1
            places = (height // stride, width // stride)
            layers.append(Convolution(1, 1, channels, narrow, places))
            stride *= step
            places = (height // stride, width // stride)
            layers.append(Convolution(3, step, narrow, narrow, places))
            layers.append(Convolution(1, 1, narrow, 4 * narrow, places))
            if not unit:
                layers.append(Convolution(1, step, channels, 4 * narrow, places, relu=False))
            channels = 4 * narrow
    return layers


def stem_layers(config: ViTConfig) -> list[Convolution]:
    """Return the convolutions of whatever stem a configuration has; a plain ViT has none."""
    kinds = {"conv": conv_stem_layers, "resnet": resnet_stem_layers}
    return kinds[config.stem.kind](config) if config.stem.kind in kinds else []


def stem_width(config: ViTConfig) -> int:
    """Numbers at a place of the grid that the projection E reads: those of a patch, or a stem's channels."""
    if config.stem.kind == "patch":
        return config.patch_values
    deeper = len(config.stem.layers) - 1
    return config.stem.width * (4 * 2**deeper if config.stem.kind == "resnet" else config.patch_size)


def conv_stem_parameters(config: ViTConfig) -> int:
    """Parameters of a convolutional stem: 3 x 3 kernels, each with a norm's scale and shift, and E."""
    return _parameters(conv_stem_layers(config), config)


def resnet_stem_parameters(config: ViTConfig) -> int:
    """Parameters of a hybrid's ResNet: kernels, each with a norm's scale and shift, and the projection E."""
    return _parameters(resnet_stem_layers(config), config)


def conv_stem_multiplications(config: ViTConfig) -> int:
    """Multiply-adds of a convolutional stem for one image: 3 x 3 kernels, then 1 x 1 to the width D."""
    return _multiplications(conv_stem_layers(config), config)


def resnet_stem_multiplications(config: ViTConfig) -> int:
    """Multiply-adds of a hybrid's ResNet for one image, and of the 1 x 1 projection to the width D."""
    return _multiplications(resnet_stem_layers(config), config)


def _parameters(layers: list[Convolution], config: ViTConfig) -> int:
    projection = (stem_width(config) + 1) * config.dim
    return sum(layer.weights + 2 * layer.after for layer in layers) + projection


def _multiplications(layers: list[Convolution], config: ViTConfig) -> int:
    projection = config.num_patches * stem_width(config) * config.dim
    return sum(layer.places[0] * layer.places[1] * layer.weights for layer in layers) + projection
