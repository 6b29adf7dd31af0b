"""What a model costs: parameters and floating-point operations."""

import torch
from torch import nn
from torch.utils.flop_counter import FlopCounterMode

from vit_from_scratch.model.config import ViTConfig
from vit_from_scratch.model.modes import evaluating, shapes_only
from vit_from_scratch.model.variants import build_stem
from vit_from_scratch.model.vit import VisionTransformer


def count_parameters(model: nn.Module) -> int:
    """Count a model's parameters, each once, raw ``nn.Parameter`` included."""
    return sum(parameter.numel() for parameter in model.parameters())


def parameters_of(config: ViTConfig) -> int:
    """Count the parameters of the model that a configuration describes; it takes no memory."""
    with shapes_only():
        return count_parameters(VisionTransformer(config))


def forward_flops(config: ViTConfig) -> int:
    """Floating-point operations of one forward pass for one image, a multiply-add as 2.

    Norms, softmax, GELU and additions are left out, as is usual: about one per cent at the paper's sizes.
    """
    embedding = 2 * config.num_patches * config.patch_values * config.dim
    if config.stem.kind != "patch":
        with shapes_only():
            stem = build_stem(config)
        embedding = counted_flops(stem, (config.channels, *config.image_shape))
    width = config.representation_size or config.dim
    head = width * config.num_classes + (config.dim * width if config.representation_size else 0)
    return embedding + config.depth * block_flops(config) + 2 * head


def block_flops(config: ViTConfig) -> int:
    """Floating-point operations of one block for one image, counted as by :func:`forward_flops`."""
    tokens, dim = config.num_tokens, config.dim
    qkv_and_projection = tokens * dim * 4 * dim
    scores_and_gathering = (3 if config.position == "relative" else 2) * tokens * tokens * dim
    mlp = 2 * tokens * dim * config.mlp_dim
    if config.mlp == "local":
        mlp += config.num_patches * 9 * config.mlp_dim
    return 2 * (qkv_and_projection + scores_and_gathering + mlp)


def training_flops(config: ViTConfig, checkpointing: bool = False) -> int:
    """Floating-point operations of a training step for one image: 3 times those of :func:`forward_flops`.

    Every matrix product comes back as two: one gives the gradient of its input, one that of its weights. (As
    is usual, the gradient of the image is counted, too, though nobody needs it.) With `checkpointing` the
    blocks are computed again in the backward pass, to spare memory.
    """
    again = config.depth * block_flops(config) if checkpointing else 0
    return 3 * forward_flops(config) + again


@torch.no_grad()
def counted_flops(model: nn.Module, image: tuple[int, int, int]) -> int:
    """Let torch count the operations of a forward pass for one image (C, H, W), in evaluation mode.

    On the meta device nothing is computed; the model is left as it was.
    """
    weight = next(model.parameters())
    images = torch.zeros(1, *image, device=weight.device, dtype=weight.dtype)
    with evaluating(model), FlopCounterMode(display=False) as counter:
        model(images)
    return counter.get_total_flops()


def parameter_table(model: nn.Module, depth: int = 2) -> str:
    """Parameters by submodule, ``depth`` levels of the module tree, as a text table."""
    counts: dict[str, int] = {}
    for name, parameter in model.named_parameters():
        place = ".".join(name.split(".")[:depth])
        counts[place] = counts.get(place, 0) + parameter.numel()
    width = max(map(len, [*counts, "total"]))
    rows = [f"{place:<{width}}  {count:>13,}" for place, count in counts.items()]
    return "\n".join([*rows, "-" * (width + 15), f"{'total':<{width}}  {count_parameters(model):>13,}"])
