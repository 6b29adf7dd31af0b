"""Check of chapter 5: the whole model."""

from collections.abc import Callable

import torch

from vit_from_scratch.checks.report import CheckFailed, call, compare, passed, randomise, with_weights_of
from vit_from_scratch.model import vit as ours
from vit_from_scratch.model.config import ViTConfig


def vision_transformer(cls: Callable[..., object]) -> None:
    """Check a class like :class:`vit_from_scratch.model.vit.VisionTransformer`.

    Args:
        cls: called with the keywords ``image_size, patch_size, channels, dim, depth, heads, mlp_dim,
            num_classes``; submodules ``patch_embedding``, ``tokens``, ``encoder`` (``blocks`` and
            ``norm``) and ``head``, a zero-initialised linear layer.

    Raises:
        CheckFailed: if parameters or results differ, or the head does not start at zero.
    """
    fields = {
        "image_size": 12,
        "patch_size": 4,
        "channels": 3,
        "dim": 12,
        "depth": 3,
        "heads": 3,
        "mlp_dim": 20,
        "num_classes": 5,
    }
    name = "VisionTransformer"
    reference = ours.VisionTransformer(ViTConfig.from_dict(fields))
    theirs = call(name, lambda: cls(**fields))
    images = torch.randn(2, 3, 12, 12)
    if isinstance(theirs, torch.nn.Module):
        untrained = call(name, theirs.eval(), images)
        if isinstance(untrained, torch.Tensor) and untrained.abs().max() > 0:
            raise CheckFailed(
                f"{name}: untrained logits are not 0; initialise weight and bias of the head with 0."
            )
    randomise(reference)
    theirs = with_weights_of(name, theirs, reference)
    tokens = reference.tokens(reference.patch_embedding(images))
    encoded = reference.encoder(tokens)
    last = tokens
    for block in reference.encoder.blocks:
        last = block(last)[0]
    mistakes = {
        "the final LayerNorm (equation 4) is missing.": reference.head(last[:, 0]),
        "the head reads the mean of all tokens; equation 4 takes the class token.": reference.head(
            encoded.mean(1)
        ),
        "the head reads the last token; the class token is the first, number 0.": reference.head(
            encoded[:, -1]
        ),
        "only the first block is called; equation 2 runs over all L layers.": reference.head(
            reference.encoder.norm(reference.encoder.blocks[0](tokens)[0])[:, 0]
        ),
    }
    compare(name, call(name, theirs, images), reference(images), mistakes)
    passed(name, "same weights, same logits as the package; the head starts at zero")
