"""What a training step keeps in memory, in bytes, by arithmetic: weights, gradients, optimiser, activations.

A step is at its largest between the forward and the backward pass. Then autograd keeps, for every operation,
what its derivative needs: the input of a dense layer, of a norm and of a GELU, the result of a softmax. These
activations are counted one by one, as torch keeps them on a CPU, for models that begin with plain patches.
Left out are short-lived buffers and what the allocator rounds up. A GPU keeps somewhat more in bfloat16:
there autocast computes LayerNorm and the explicit softmax in float32.
"""

import dataclasses

from torch import nn

from vit_from_scratch.errors import InputError, unknown_name
from vit_from_scratch.model.config import ViTConfig
from vit_from_scratch.model.cost import count_parameters
from vit_from_scratch.model.modes import shapes_only
from vit_from_scratch.model.vit import VisionTransformer
from vit_from_scratch.settings import require

#: Bytes of a value of an activation, by the precision that `TrainConfig` names. Weights stay in float32.
PRECISIONS = {"float32": 4, "bfloat16": 2}

#: Numbers that an optimiser remembers for each weight: Adam two moments, SGD its momentum. Muon has a
#: momentum for the dense weights of the blocks, and AdamW beside it for all others.
OPTIMISERS = {"adamw": 2, "adam": 2, "sgd": 1, "muon": 2}

ATTENTIONS = ("fused", "explicit")


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
        """The sum, gradients at the peak included: a batch in one piece (see `accumulation`) needs less."""
        return sum(dataclasses.astuple(self))


def training_memory(
    config: ViTConfig,
    batch: int = 1,
    precision: str = "float32",
    attention: str = "fused",
    checkpointing: bool = False,
    optimiser: str = "adamw",
) -> TrainingMemory:
    """Count the bytes of a training step with "adamw", "adam", "sgd" (with momentum) or "muon".

    The other arguments and the errors are those of :func:`activation_memory`.
    """
    activations = activation_memory(config, batch, precision, attention, checkpointing)
    if optimiser not in OPTIMISERS:
        raise unknown_name("optimiser", optimiser, OPTIMISERS)
    with shapes_only():
        model = VisionTransformer(config)
    weights = 4 * count_parameters(model)
    copies = 0
    if precision == "bfloat16":  # for the gradients of layers' inputs, the image's apart
        _, *others = (part for part in model.modules() if isinstance(part, nn.Linear | nn.Conv2d))
        copies = 2 * sum(layer.weight.numel() for layer in others)
    remembered = OPTIMISERS[optimiser] * weights
    if optimiser == "muon":
        dense = (part for part in model.encoder.blocks.modules() if isinstance(part, nn.Linear))
        remembered -= 4 * sum(layer.weight.numel() for layer in dense)
    return TrainingMemory(weights, weights, remembered, copies, activations)


def activation_memory(
    config: ViTConfig,
    batch: int = 1,
    precision: str = "float32",
    attention: str = "fused",
    checkpointing: bool = False,
) -> int:
    """Count the bytes that the backward pass needs of the forward pass, the images among them.

    With `checkpointing` every block keeps its input alone and is computed again when the backward pass comes
    to it (Chen et al., 2016): one at a time is there in full, at the price of a second forward pass.

    Args:
        config: the model.
        batch: images B that go through at once.
        precision: ``"float32"``, or ``"bfloat16"`` under autocast.
        attention: ``"fused"``, or ``"explicit"``, which keeps the T x T weights of every head.
        checkpointing: whether blocks are checkpointed, as by ``torch.utils.checkpoint``.

    Raises:
        InputError: an unknown name, no image, relative positions, or another stem than plain patches.
    """
    if precision not in PRECISIONS:
        raise unknown_name("precision", precision, PRECISIONS)
    if attention not in ATTENTIONS:
        raise unknown_name("attention", attention, ATTENTIONS)
    require(1 <= batch <= 2**31, "batch", batch, f"at least 1 image, at most {2**31:,}")
    if config.stem.kind != "patch":
        raise InputError(
            f"stem={config.stem.kind!r}: expected 'patch', as the memory of other stems is not worked out."
        )
    if config.position == "relative":
        raise InputError(
            "position='relative': expected another form, as the memory of this one is not worked out."
        )
    size = PRECISIONS[precision]
    block, end = block_activations(config, size, attention), end_activations(config, size)
    blocks = config.depth * block + end
    if checkpointing and config.depth:  # when the last block is computed again, what followed it is freed
        kept = size * config.num_tokens * config.dim
        blocks = (config.depth - 1) * kept + max(block, kept + end)
    patches = config.num_patches * config.patch_values  # the encoder begins with z_0
    masks = config.num_tokens * config.dim if config.dropout else 0
    return batch * (size * (patches + masks) + blocks)


def block_activations(config: ViTConfig, size: int, attention: str) -> int:
    """Bytes that a block keeps for one image; `size` is that of a value.

    Width D eight times: z, its norm, q, k, v, what was gathered, z' and its norm. Width M twice: the GELU's
    input and its result. A local MLP (chapter 9) has the convolution's result and the sum as well.
    """
    tokens, dim, hidden = config.num_tokens, config.dim, config.mlp_dim
    values = tokens * (8 * dim + 2 * hidden)
    if config.mlp == "local":
        values += (config.num_patches + tokens) * hidden
    if config.dropout:
        values += tokens * (2 * dim + hidden)  # masks
    statistics = 4 * tokens  # mean and reciprocal deviation, for two norms, in float32
    if config.qk_norm:
        values += tokens * dim * (3 if size == 4 else 4)  # as they were; in bfloat16 q, k in float32
        statistics += 2 * tokens * config.heads
    if attention == "explicit":
        values += config.heads * tokens**2  # the weights A
    else:
        statistics += config.heads * tokens  # logarithms of what the softmax divides each row of A by
    return size * values + 4 * statistics


def end_activations(config: ViTConfig, size: int) -> int:
    """Bytes that norm, pooling, head and loss keep for one image; `size` is that of a value."""
    sequence, dim = config.num_tokens * config.dim, config.dim
    pooled = sequence if config.pool == "cls" else dim  # one token's vector shares the memory of all
    values = {"final": sequence + pooled, "pooled": pooled + dim, "none": pooled}[config.norm]
    statistics = {"final": 2 * config.num_tokens, "pooled": 2, "none": 0}[config.norm]
    loss = 4 * config.num_classes + 8  # probabilities in float32, and the label
    return size * (values + (config.representation_size or 0)) + 4 * statistics + loss
