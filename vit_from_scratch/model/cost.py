"""What a model costs: parameters, floating-point operations, and a whole pre-training in exaFLOPs.

The bytes of a training step are counted in `vit_from_scratch.model.memory`.
"""

from torch import nn

from vit_from_scratch.model.config import ViTConfig, variant_config
from vit_from_scratch.model.stem_cost import (
    conv_stem_multiplications,
    conv_stem_parameters,
    resnet_stem_multiplications,
    resnet_stem_parameters,
)

#: Images of JFT-300M, the paper's largest pre-training set (section 4.1).
JFT_IMAGES = 303_000_000


def count_parameters(model: nn.Module) -> int:
    """All parameters of a model, each counted once, raw ``nn.Parameter`` included."""
    return sum(parameter.numel() for parameter in model.parameters())


def parameters_of(config: ViTConfig) -> int:
    """All parameters of the model that a configuration describes, by arithmetic: no size is too large.

    Equal to :func:`count_parameters` of the model, which is not built for it.
    """
    dim, hidden, (rows, columns) = config.dim, config.mlp_dim, config.grid
    embedding = dense(config.patch_values, dim)
    if config.stem.kind == "conv":
        embedding = conv_stem_parameters(config)
    elif config.stem.kind == "resnet":
        embedding = resnet_stem_parameters(config)
    places = {"learned": config.num_tokens, "learned_2d": rows + columns}.get(config.position, 0)
    mlp = dense(dim, hidden) + dense(hidden, dim) + (10 * hidden if config.mlp == "local" else 0)
    attention = 3 * dim * (dim + int(config.qkv_bias)) + dense(dim, dim)
    block = attention + mlp + 4 * dim  # the last for two LayerNorms
    norm = 0 if config.norm == "none" else 2 * dim
    width = config.representation_size or dim
    head = dense(width, config.num_classes) + (dense(dim, width) if config.representation_size else 0)
    return embedding + (places + int(config.class_token)) * dim + config.depth * block + norm + head


def dense(before: int, after: int) -> int:
    """Parameters of a dense layer: weights and biases."""
    return (before + 1) * after


def forward_flops(config: ViTConfig) -> int:
    """Floating-point operations of one forward pass for one image.

    Counts matrix multiplications, a multiply-add as 2 operations; norms, softmax, GELU and additions
    are left out, as is usual: they come to about one per cent at the paper's sizes.
    """
    dim = config.dim
    embedding = config.num_patches * config.patch_values * dim
    if config.stem.kind == "conv":
        embedding = conv_stem_multiplications(config)
    elif config.stem.kind == "resnet":
        embedding = resnet_stem_multiplications(config)
    width = config.representation_size or dim
    head = width * config.num_classes + (dim * width if config.representation_size else 0)
    return 2 * (embedding + head) + config.depth * block_flops(config)


def block_flops(config: ViTConfig) -> int:
    """Floating-point operations of one block for one image, counted as by :func:`forward_flops`."""
    tokens, dim = config.num_tokens, config.dim
    qkv_and_projection = tokens * dim * 4 * dim
    scores_and_gathering = 2 * tokens * tokens * dim
    mlp = 2 * tokens * dim * config.mlp_dim
    if config.mlp == "local":
        mlp += config.num_patches * 9 * config.mlp_dim
    return 2 * (qkv_and_projection + scores_and_gathering + mlp)


def training_flops(config: ViTConfig, checkpointing: bool = False) -> int:
    """Floating-point operations of a training step for one image: 3 times those of :func:`forward_flops`.

    Every matrix product of the forward pass comes back as two: one gives the gradient of its input, one that
    of its weights. (Nobody needs the image's gradient, yet that of the first layer's input is counted, as is
    usual.)

    Args:
        config: the model.
        checkpointing: whether the blocks are computed again in the backward pass, to spare memory.
    """
    again = config.depth * block_flops(config) if checkpointing else 0
    return 3 * forward_flops(config) + again


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
    return training_flops(config) * images * epochs / 1e18


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
    width = max(map(len, [*counts, "total"]))
    rows = [f"{place:<{width}}  {count:>13,}" for place, count in counts.items()]
    return "\n".join([*rows, "-" * (width + 15), f"{'total':<{width}}  {count_parameters(model):>13,}"])
