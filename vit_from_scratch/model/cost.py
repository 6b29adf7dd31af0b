"""What a model costs: parameters, floating-point operations, and a whole pre-training in exaFLOPs."""

from torch import nn

from vit_from_scratch.model.config import ViTConfig, variant_config

#: Images of JFT-300M, the paper's largest pre-training set (section 4.1).
JFT_IMAGES = 303_000_000


def count_parameters(model: nn.Module) -> int:
    """All parameters of a model, each counted once, raw ``nn.Parameter`` included."""
    return sum(parameter.numel() for parameter in model.parameters())


def forward_flops(config: ViTConfig) -> int:
    """Floating-point operations of one forward pass for one image.

    Counts matrix multiplications, a multiply-add as 2 operations; norms, softmax, GELU and additions
    are left out, as is usual: they come to about one per cent at the paper's sizes.
    """
    tokens, dim = config.num_tokens, config.dim
    embedding = config.num_patches * config.patch_values * dim
    if config.stem == "conv":
        embedding = conv_stem_multiplications(config)
    elif config.stem == "resnet":
        embedding = resnet_stem_multiplications(config)
    qkv_and_projection = tokens * dim * 4 * dim
    scores_and_gathering = 2 * tokens * tokens * dim
    mlp = 2 * tokens * dim * config.mlp_dim
    if config.mlp == "local":
        mlp += config.num_patches * 9 * config.mlp_dim
    block = qkv_and_projection + scores_and_gathering + mlp
    width = config.representation_size or dim
    head = width * config.num_classes + (dim * width if config.representation_size else 0)
    return 2 * (embedding + config.depth * block + head)


def conv_stem_multiplications(config: ViTConfig) -> int:
    """Multiply-adds of a convolutional stem for one image: 3 x 3 kernels, then 1 x 1 to the width D."""
    height, width = config.image_shape
    total, before = 0, config.channels
    for index in range(config.patch_size.bit_length()):
        after = config.stem_width * 2**index
        total += (height >> index) * (width >> index) * 9 * before * after
        before = after
    return total + config.num_patches * before * config.dim


def resnet_stem_multiplications(config: ViTConfig) -> int:
    """Multiply-adds of a hybrid's ResNet for one image, and of the 1 x 1 projection to the width D."""
    height, width = config.image_shape
    large = config.stem_root_stride == 4
    total = (
        (height * width // (4 if large else 1)) * (49 if large else 9) * config.channels * config.stem_width
    )
    places = height * width // config.stem_root_stride**2
    channels = config.stem_width
    for stage, units in enumerate(config.stem_layers):
        narrow = config.stem_width * 2**stage
        for unit in range(units):
            total += places * channels * narrow  # 1 x 1, before the stride
            places = places // 4 if stage and unit == 0 else places
            total += places * narrow * (9 * narrow + 4 * narrow)
            total += places * channels * 4 * narrow if unit == 0 else 0  # the shortcut
            channels = 4 * narrow
    return total + config.num_patches * channels * config.dim


def pretraining_exaflops(
    variant: str, epochs: float, images: int = JFT_IMAGES, image_size: int = 224
) -> float:
    """Operations of a whole pre-training, in exaFLOPs (10^18), as the last column of Table 6.

    Args:
        variant: for instance ``"B/16"``.
        epochs: passes over the data.
        images: images of one pass; JFT-300M by default.
        image_size: resolution of the pre-training in pixels.

    Returns:
        3 forward passes (a backward pass costs two) x images x epochs / 10^18.
    """
    config = variant_config(variant, image_size=image_size)
    return 3 * forward_flops(config) * images * epochs / 1e18


def parameter_table(model: nn.Module, depth: int = 2) -> str:
    """Parameters by submodule as a text table, raw ``nn.Parameter`` included.

    Args:
        model: any module.
        depth: how many levels of the module tree to show.
    """
    counts: dict[str, int] = {}
    for name, parameter in model.named_parameters():
        place = ".".join(name.split(".")[:depth])
        counts[place] = counts.get(place, 0) + parameter.numel()
    width = max(len(place) for place in counts)
    rows = [f"{place:<{width}}  {count:>13,}" for place, count in counts.items()]
    return "\n".join([*rows, "-" * (width + 15), f"{'total':<{width}}  {count_parameters(model):>13,}"])
