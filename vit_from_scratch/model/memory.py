"""What a training step keeps in memory, in bytes, by arithmetic: weights, gradients, optimiser, activations.

A step is at its largest between the forward and the backward pass. Then autograd keeps, for every operation,
what its derivative needs: the input of a dense layer, of a norm and of a GELU, the result of a softmax. These
are the activations, and here they are counted one by one, as torch keeps them on a CPU. Left out are buffers
of a moment, such as a gradient on its way, what the allocator rounds up, and the norms' statistics inside
a stem.

On a GPU two things differ: a dropout mask has one byte a value, and autocast works out LayerNorm, GroupNorm
and the explicit softmax in float32, so that in bfloat16 somewhat more is kept.
"""

import dataclasses

import torch
from torch import nn

from vit_from_scratch.errors import unknown_name
from vit_from_scratch.model.config import ViTConfig
from vit_from_scratch.model.cost import parameters_of
from vit_from_scratch.model.counting import kept_bytes
from vit_from_scratch.model.variants import choose_stem
from vit_from_scratch.settings import require

#: Bytes of a value of an activation, by the precision that `TrainConfig` names. Weights stay in float32.
PRECISIONS = {"float32": 4, "bfloat16": 2}

#: Numbers that an optimiser remembers for each weight: Adam two moments, SGD its momentum.
OPTIMISERS = {"adamw": 2, "adam": 2, "sgd": 1}

ATTENTIONS = ("fused", "explicit")

LARGEST_BATCH = 2**31


@dataclasses.dataclass(frozen=True)
class TrainingMemory:
    """Bytes of a training step on one device.

    Args:
        weights: the parameters, in float32.
        gradients: one number a parameter.
        optimiser: what the optimiser remembers between two steps.
        copies: the matrices in bfloat16, which autocast keeps until the backward pass is over; else 0.
        activations: what the backward pass needs of the forward pass.
    """

    weights: int
    gradients: int
    optimiser: int
    copies: int
    activations: int

    @property
    def total(self) -> int:
        """All of it: the most that is there at once if gradients are, as with accumulation.

        A step that begins without gradients needs less, because they come as the activations go.
        """
        return self.weights + self.gradients + self.optimiser + self.copies + self.activations


def training_memory(
    config: ViTConfig,
    batch: int = 1,
    precision: str = "float32",
    attention: str = "fused",
    checkpointing: bool = False,
    optimiser: str = "adamw",
) -> TrainingMemory:
    """Count the bytes of a training step.

    Args:
        config: the model.
        batch: images B that go through at once.
        precision: ``"float32"``, or ``"bfloat16"`` under autocast.
        attention: ``"fused"``, or ``"explicit"``, which keeps the T x T weights of every head.
        checkpointing: as in :func:`activation_memory`.
        optimiser: ``"adamw"``, ``"adam"`` or ``"sgd"`` (with momentum).

    Raises:
        InputError: an unknown name, or no image.
    """
    activations = activation_memory(config, batch, precision, attention, checkpointing)
    if optimiser not in OPTIMISERS:
        raise unknown_name("optimiser", optimiser, OPTIMISERS)
    weights = 4 * parameters_of(config)
    copies = 0 if precision == "float32" else PRECISIONS[precision] * copied_weights(config)
    return TrainingMemory(weights, weights, OPTIMISERS[optimiser] * weights, copies, activations)


def activation_memory(
    config: ViTConfig,
    batch: int = 1,
    precision: str = "float32",
    attention: str = "fused",
    checkpointing: bool = False,
) -> int:
    """Count the bytes that the backward pass needs of the forward pass, the images among them.

    With `checkpointing` every block keeps its input alone and is computed again when the backward pass comes
    to it (Chen et al., 2016): of the L blocks one is there in full at a time. The price is a second forward
    pass.

    Args:
        config: the model.
        batch: images B that go through at once.
        precision: ``"float32"``, or ``"bfloat16"`` under autocast.
        attention: ``"fused"``, or ``"explicit"``, which keeps the T x T weights of every head.
        checkpointing: whether blocks are checkpointed, as by ``torch.utils.checkpoint``.

    Raises:
        InputError: an unknown name, or no image.
    """
    if precision not in PRECISIONS:
        raise unknown_name("precision", precision, PRECISIONS)
    if attention not in ATTENTIONS:
        raise unknown_name("attention", attention, ATTENTIONS)
    require(1 <= batch <= LARGEST_BATCH, "batch", batch, f"at least 1 image, at most {LARGEST_BATCH:,}")
    size = PRECISIONS[precision]
    block, end = block_activations(config, size, attention), end_activations(config, size)
    rest = config.depth * block + end
    if checkpointing:  # when the last block is computed again, what came behind it has gone
        kept = size * config.num_tokens * config.dim
        rest = (config.depth - 1) * kept + max(block, kept + end)
    image, once = stem_activations(config, size)
    return batch * (image + rest) + once


def block_activations(config: ViTConfig, size: int, attention: str) -> int:
    """Bytes that a block keeps for one image, its input z among them; `size` is that of a value.

    Width D eight times: z, its norm, q, k, v, what was gathered, z' and its norm. Width M twice: the GELU's
    input and its result. A local MLP (chapter 9) has the convolution's result and the sum as well.
    """
    tokens, dim, hidden = config.num_tokens, config.dim, config.mlp_dim
    values = tokens * (8 * dim + 2 * hidden)
    if config.mlp == "local":
        values += (config.num_patches + tokens) * hidden
    if config.dropout:
        values += tokens * (2 * dim + hidden)  # masks
    statistics = 4 * tokens  # mean and deviation, for two norms, in float32
    if attention == "explicit":
        values += config.heads * tokens**2  # the weights A
    else:
        statistics += config.heads * tokens  # the sum that the softmax divides by, for each row of A
    return size * values + 4 * statistics


def stem_activations(config: ViTConfig, size: int) -> tuple[int, int]:
    """Bytes kept before the encoder, which begins with z_0; `size` is that of a value.

    A stem is run on the meta device, as a ResNet has too many parts for a formula.

    Returns:
        Bytes for one image, and bytes kept once for a whole batch: a ResNet's filters, centred in float32 and
        standardised as they are applied.
    """
    with torch.device("meta"):
        stem = choose_stem(config)
        # Not of one image: its axes can be swapped without a copy.
        two, three = (kept_bytes(stem, torch.zeros(n, config.channels, *config.image_shape)) for n in (2, 3))
    masks = config.num_tokens * config.dim if config.dropout else 0
    floats, indices = three[0] - two[0], three[1] - two[1]
    return size * (floats // 4 + masks) + indices, (two[0] - 2 * floats) * (4 + size) // 8


def end_activations(config: ViTConfig, size: int) -> int:
    """Bytes kept for one image behind the last block, by norm, pooling, head and loss; `size` is a value's.

    Whoever keeps the class token's vector keeps the whole sequence, in whose memory it lies.
    """
    sequence, dim = config.num_tokens * config.dim, config.dim
    pooled = sequence if config.pool == "cls" else dim
    values = {"final": sequence + pooled, "pooled": pooled + dim, "none": pooled}[config.norm]
    statistics = {"final": 2 * config.num_tokens, "pooled": 2, "none": 0}[config.norm]
    probabilities = config.num_classes  # of the loss, in float32
    label = 8
    return size * (values + (config.representation_size or 0)) + 4 * (statistics + probabilities) + label


def copied_weights(config: ViTConfig) -> int:
    """Numbers in the matrices and kernels of which autocast keeps a copy for the backward pass.

    They give the gradients of their inputs. So the first layer has none: nobody asks for the image's.
    (The filters of a ResNet are counted where they are standardised, among the activations.)
    """
    dim, hidden = config.dim, config.mlp_dim
    block = 4 * dim * dim + 2 * dim * hidden + (9 * hidden if config.mlp == "local" else 0)
    width = config.representation_size or dim
    head = width * config.num_classes + (dim * width if config.representation_size else 0)
    return config.depth * block + head + _copied_in_stem(config)


def _copied_in_stem(config: ViTConfig) -> int:
    """The same of the stem alone."""
    if config.stem.kind == "patch":
        return 0
    with torch.device("meta"):
        layers = choose_stem(config).modules()
    return sum(layer.weight.numel() for layer in layers if type(layer) in (nn.Linear, nn.Conv2d))
