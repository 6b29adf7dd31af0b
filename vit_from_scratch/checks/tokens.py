"""Check of chapter 2: class token and positions."""

from collections.abc import Callable

import torch
from torch import nn

from vit_from_scratch.checks.report import CheckFailed, call, compare, passed, randomise, with_weights_of
from vit_from_scratch.model import tokens
from vit_from_scratch.model.config import ViTConfig


def token_sequence(cls: Callable[[int, int], object]) -> None:
    """Check a class like :class:`vit_from_scratch.model.tokens.TokenSequence`.

    Args:
        cls: called as ``cls(num_patches, dim)``; parameters ``class_token`` (1, 1, D) and
            ``position`` (1, N + 1, D).

    Raises:
        CheckFailed: if parameters or results differ, or the initial values are not the reference's.
    """
    config = ViTConfig(image_size=6, patch_size=2, channels=1, dim=8, depth=1, heads=2, mlp_dim=8)
    reference = tokens.TokenSequence(config)
    theirs = call("TokenSequence", cls, config.num_patches, config.dim)
    if isinstance(theirs, nn.Module):
        _check_start(dict(theirs.named_parameters()))
    randomise(reference)
    theirs = with_weights_of("TokenSequence", theirs, reference)
    embeddings = torch.randn(4, config.num_patches, config.dim)
    expected = reference(embeddings)
    first, position = reference.get_parameter("class_token"), reference.get_parameter("position")
    class_token = first.expand(4, 1, -1)
    mistakes = {
        "the class token stands last; equation 1 puts it first.": torch.cat([embeddings, class_token], 1)
        + position,
        "the positions are not added.": torch.cat([class_token, embeddings], 1),
        "the class token gets no position; equation 1 adds E_pos to every token.": torch.cat(
            [class_token, embeddings + position[:, 1:]], 1
        ),
    }
    compare("TokenSequence", call("TokenSequence", theirs, embeddings), expected, mistakes)
    passed("TokenSequence", "same weights, same tokens as the package")


def _check_start(start: dict[str, nn.Parameter]) -> None:
    if "class_token" in start and start["class_token"].abs().max() > 0:
        raise CheckFailed("TokenSequence: the class token starts at other values than 0, the reference's.")
    if "position" in start and not 0.01 < start["position"].std() < 0.03:
        spread = start["position"].std().item()
        raise CheckFailed(
            f"TokenSequence: positions start with a spread of {spread:.3f}; expected N(0, 0.02)."
        )
