"""Check of chapter 2: class token and positions."""

from collections.abc import Callable

import torch
from torch import Tensor, nn

from vit_classroom.checks.judging import check, judge_module
from vit_classroom.checks.report import Case, Piece, randomise
from vit_classroom.checks.starts import starts_at_zero, starts_normal
from vit_from_scratch.model import tokens
from vit_from_scratch.model.config import ViTConfig

SEQUENCE = Piece(
    "TokenSequence", "TokenSequence(num_patches, dim)", "(B, N + 1, D)", 'chapter 2, "Equation 1"'
)


@check(SEQUENCE)
def token_sequence(cls: Callable[[int, int], object]) -> None:
    """Check a class like :class:`vit_from_scratch.model.tokens.TokenSequence`.

    It is called as ``cls(num_patches, dim)``; parameters ``class_token`` (1, 1, D) and ``position``
    (1, N + 1, D).

    Raises:
        CheckFailed: if parameters or results differ, or the initial values are not the reference's.
    """
    side, width = 6, 64
    count = side**2
    config = ViTConfig(image_size=side, patch_size=1, channels=1, dim=width, depth=1, heads=2, mlp_dim=8)
    reference = tokens.TokenSequence(config)
    randomise(reference)

    def cases() -> list[Case]:
        found = []
        for batch in (1, 4):
            embeddings = torch.randn(batch, count, width)
            mistakes = with_class_token(reference, embeddings)
            label = f"embeddings of shape {tuple(embeddings.shape)}"
            found.append(Case((embeddings,), reference(embeddings), mistakes, label))
        return found

    judge_module(SEQUENCE, cls, (count, width), reference, cases, _look_at_start)


def with_class_token(reference: nn.Module, embeddings: Tensor) -> dict[str, Tensor]:
    """What each wrong way from embeddings to N + 1 tokens gives."""
    first, position = reference.get_parameter("class_token"), reference.get_parameter("position")
    class_token = first.expand(len(embeddings), 1, -1)
    plain = torch.cat([class_token, embeddings], 1)
    only = "there is no class token in the result: N patches need N + 1 tokens"
    return {
        "the class token stands last; equation 1 puts it first": torch.cat([embeddings, class_token], 1)
        + position,
        "the class token stands last and takes the first place's position along; equation 1 puts it "
        "first": torch.cat([embeddings + position[:, 1:], class_token + position[:, :1]], 1),
        "the positions are not added": plain,
        "the positions are added twice": plain + 2 * position,
        "the positions are multiplied; equation 1 adds them": plain * position,
        "the positions are taken away; equation 1 adds them": plain - position,
        "each token gets the position of the one before it": plain + position.roll(1, dims=1),
        "each token gets the position of the one after it": plain + position.roll(-1, dims=1),
        "every token gets the same position, the first": plain + position[:, :1],
        "the class token gets no position; equation 1 adds E_pos to every token": torch.cat(
            [class_token, embeddings + position[:, 1:]], 1
        ),
        "the patches get the positions from 0 on, and the class token none": torch.cat(
            [class_token, embeddings + position[:, :-1]], 1
        ),
        "only the class token gets its position": torch.cat([class_token + position[:, :1], embeddings], 1),
        only: embeddings + position[:, 1:],
        f"{only}; and the patches get the positions from 0 on": embeddings + position[:, :-1],
        "the class token is added to the patches; equation 1 puts it in front of them": embeddings
        + first
        + position[:, 1:],
        "the class token is zero: it is not the parameter": torch.cat(
            [torch.zeros_like(class_token), embeddings], 1
        )
        + position,
    }


def _look_at_start(module: nn.Module) -> None:
    starts_at_zero(SEQUENCE, module, ["class_token"], "the reference code begins it at 0")
    starts_normal(SEQUENCE, module, "position", 0.02)
