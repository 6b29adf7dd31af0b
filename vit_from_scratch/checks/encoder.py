"""Checks of chapter 4: the MLP and the encoder block."""

from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import Tensor

from vit_from_scratch.checks.report import CheckFailed, call, compare, passed, randomise, with_weights_of
from vit_from_scratch.model import encoder as ours
from vit_from_scratch.model.config import ViTConfig


def mlp(cls: Callable[[int, int], object]) -> None:
    """Check a class like :class:`vit_from_scratch.model.encoder.Mlp`.

    Args:
        cls: called as ``cls(dim, mlp_dim)``; linear layers ``hidden`` and ``output``.

    Raises:
        CheckFailed: if parameters or results differ; the message names another non-linearity.
    """
    reference = ours.Mlp(6, 10)
    randomise(reference)
    theirs = with_weights_of("Mlp", call("Mlp", cls, 6, 10), reference)
    tokens = 3 * torch.randn(2, 5, 6)
    hidden = reference.hidden(tokens)
    mistakes = {
        "the GELU is the tanh approximation; the package's default is the exact one.": reference.output(
            F.gelu(hidden, approximate="tanh")
        ),
        "the non-linearity is a ReLU; the paper takes a GELU.": reference.output(hidden.relu()),
        "there is no non-linearity between the two layers.": reference.output(hidden),
        "a GELU follows the second layer too.": F.gelu(reference(tokens)),
    }
    compare("Mlp", call("Mlp", theirs, tokens), reference(tokens), mistakes)
    passed("Mlp", "same weights, same result as the package")


def block(cls: Callable[[int, int, int], object]) -> None:
    """Check a class like :class:`vit_from_scratch.model.encoder.Block`.

    Args:
        cls: called as ``cls(dim, heads, mlp_dim)``; submodules ``attention_norm``, ``attention``,
            ``mlp_norm`` and ``mlp``; returns (B, T, D), or a pair that begins with it.

    Raises:
        CheckFailed: if parameters or results differ, or dropout works in evaluation.
    """
    config = ViTConfig(image_size=4, patch_size=2, dim=12, depth=1, heads=3, mlp_dim=20)
    reference = ours.Block(config)
    randomise(reference)
    theirs = with_weights_of("Block", call("Block", cls, 12, 3, 20), reference)
    tokens = torch.randn(2, 5, 12)

    def attend(x: Tensor) -> Tensor:
        return reference.attention(x)[0]

    norm_1, norm_2, feed = reference.attention_norm, reference.mlp_norm, reference.mlp
    middle = tokens + attend(norm_1(tokens))
    unnormed = tokens + attend(tokens)
    post = norm_1(tokens + attend(tokens))
    mistakes = {
        "the norms come after the additions (post-norm); equations 2 and 3 normalise first.": norm_2(
            post + feed(post)
        ),
        "the residual around the attention is missing (the + z of equation 2).": (
            attend(norm_1(tokens)) + feed(norm_2(attend(norm_1(tokens))))
        ),
        "the residual around the MLP is missing (the + z' of equation 3).": feed(norm_2(middle)),
        "attention_norm is declared and never called.": unnormed + feed(norm_2(unnormed)),
        "mlp_norm is declared and never called.": middle + feed(middle),
        "the attention's norm is used for the MLP too; equation 3 has its own.": middle
        + feed(norm_1(middle)),
        "the MLP reads the block's input; equation 3 feeds it the result of equation 2.": (
            middle + feed(norm_2(tokens))
        ),
    }
    got, again = (_first(call("Block", theirs, tokens)) for _ in range(2))
    if isinstance(got, Tensor) and isinstance(again, Tensor) and not torch.equal(got, again):
        raise CheckFailed("Block: two calls in evaluation differ; is dropout still on?")
    compare("Block", got, reference(tokens)[0], mistakes)
    passed("Block", "same weights, same result as the package")


def _first(result: object) -> object:
    """The tokens of a block that returns its attention weights beside them, or the result itself."""
    return result[0] if isinstance(result, tuple) else result
