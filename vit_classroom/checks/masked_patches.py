"""Checks of chapter 11: what is asked of a patch, what is shown in its place, and what counts."""

from collections.abc import Callable

import torch
import torch.nn.functional as F
from einops import rearrange
from torch import Tensor

from vit_classroom.checks.judging import check, judge_function
from vit_classroom.checks.report import Case, Piece

TARGETS = Piece(
    "colour_targets",
    "colour_targets(images, patch_size)",
    "(B, N), a colour number for each patch",
    'chapter 11, "What is asked"',
    exact=True,
    gradients=False,
)
CORRUPTED = Piece(
    "corrupted",
    "corrupted(embeddings, mask_token, others, chosen, fate)",
    "(B, N, D)",
    'chapter 11, "What is shown"',
)
MASKED_LOSS = Piece(
    "masked_loss", "masked_loss(logits, targets, chosen)", "a single number", 'chapter 11, "What counts"'
)


def numbered(levels: Tensor) -> Tensor:
    """Number colours (..., 3) of 0 to 7 a channel: 64 r + 8 g + b."""
    return (levels.long() * torch.tensor([64, 8, 1])).sum(-1)


@check(TARGETS)
def colour_targets(function: Callable[[Tensor, int], Tensor]) -> None:
    """Check a function ``(images, patch_size)`` that numbers the mean colour of each patch (appendix B.1.2).

    Images are (B, 3, H, W) floats from 0 to 255; the result is (B, N), 0 to 511: eight equal bins a channel,
    64 r + 8 g + b.

    Raises:
        CheckFailed: if it differs; the message names another order, rounding, or bins before the mean.
    """

    def pixels(images: Tensor, size: int) -> Tensor:
        return rearrange(images, "b c (i p) (j q) -> b (i j) (p q) c", p=size, q=size)

    cases = []
    for batch, rows, columns, size in [(2, 3, 2, 4), (3, 2, 4, 2), (1, 4, 4, 3)]:
        patches = torch.rand(batch, rows * columns, 1, 3) * 255
        patches = (patches + 120 * torch.randn(batch, rows * columns, size * size, 3)).clamp(0, 255)
        patches[:, 0], patches[:, 1] = 0.0, 255.0  # the first and the last colour
        images = rearrange(patches, "b (i j) (p q) c -> b c (i p) (j q)", i=rows, p=size)
        means = pixels(images, size).mean(2)
        bins = (means / 32).floor().clamp(max=7)
        right = numbered(bins)
        median = pixels(images, size).median(2).values
        mistakes = {
            "red counts least and blue most; it is 64 r + 8 g + b": numbered(bins.flip(-1)),
            "the channels are added without 64 and 8, so that colours share a number": bins.sum(-1).long(),
            "the powers are those of 10: a channel has 8 levels, so 64, 8 and 1": (
                bins.long() * torch.tensor([100, 10, 1])
            ).sum(-1),
            "the mean is rounded to a level; cut it: floor(mean / 32)": numbered(
                (means / 32).round().clamp(max=7)
            ),
            "the 255 is spread over 0 to 7 and rounded; the eight bins have the same width, 32": numbered(
                (means / 255 * 7).round()
            ),
            "each pixel is cut before the mean; average first": numbered(
                (pixels(images, size) / 32).floor().clamp(max=7).mean(2).floor()
            ),
            "it is the median colour; take the mean": numbered((median / 32).floor().clamp(max=7)),
            "it is the first pixel of each patch; take the mean": numbered(
                (pixels(images, size)[:, :, 0] / 32).floor().clamp(max=7)
            ),
            "the brightest value of each channel is taken; take the mean": numbered(
                (pixels(images, size).amax(2) / 32).floor().clamp(max=7)
            ),
            "the patches come column by column; they come row by row": rearrange(
                right, "b (i j) -> b (j i)", i=rows
            ),
            "it is still a grid: flatten it to (B, N)": right.view(batch, rows, columns),
            "these are three levels a patch; make one number of them": bins.long(),
            "these are levels of 0 to 15, 4 bits; 3 bits are 8 levels": (
                (means / 16).floor().long() * torch.tensor([256, 16, 1])
            ).sum(-1),
            "the numbers begin at 1; they begin at 0": right + 1,
            "the images are taken to be from 0 to 1; they are from 0 to 255": numbered(
                (means * 8).floor().clamp(max=7)
            ),
        }
        label = f"images of shape {tuple(images.shape)}, patch_size {size}"
        cases.append(Case((images, size), right, mistakes, label))
    judge_function(TARGETS, function, lambda images, size: images, cases, [])


@check(CORRUPTED)
def corrupted(function: Callable[[Tensor, Tensor, Tensor, Tensor, Tensor], Tensor]) -> None:
    """Check a function ``(embeddings, mask_token, others, chosen, fate)`` that corrupts patches (B.1.2).

    Embeddings and those of other patches are (B, N, D), the mask token (D,), `chosen` (B, N) is true where a
    patch is corrupted, and `fate` (B, N) has numbers in [0, 1): below 0.8 the mask token stands there, below
    0.9 the other patch, else the patch itself.

    Raises:
        CheckFailed: if it differs; the message names patches that were not chosen, or shares that changed
            places.
    """

    def by(
        mask: Tensor, other: Tensor, embeddings: Tensor, token: Tensor, others: Tensor
    ) -> Tensor:  # where each stands
        return torch.where(
            mask[..., None], token, torch.where((other & ~mask)[..., None], others, embeddings)
        )

    def ours(embeddings: Tensor, token: Tensor, others: Tensor, chosen: Tensor, fate: Tensor) -> Tensor:
        middle = chosen & (fate >= 0.8) & (fate < 0.9)
        return by(chosen & (fate < 0.8), middle, embeddings, token, others)

    cases = []
    for batch, count, dim in [(2, 40, 3), (3, 30, 4), (1, 60, 5)]:
        embeddings, others = torch.randn(batch, count, dim), torch.randn(batch, count, dim)
        token = torch.randn(dim)
        chosen = torch.rand(batch, count).argsort(1) < count // 2
        fate = torch.rand(batch, count).argsort(1) / count  # every tenth is there
        values = (embeddings, token, others)
        low, high = fate < 0.8, fate >= 0.9
        never = torch.zeros_like(chosen)
        right = ours(*values, chosen, fate)
        mistakes = {
            "patches that were not chosen are corrupted, too": by(low, ~low & ~high, *values),
            "the patches that were not chosen are corrupted, and the chosen ones are left": ours(
                *values, ~chosen, fate
            ),
            "every chosen patch is masked; one in ten is replaced and one in ten left": by(
                chosen, never, *values
            ),
            "no patch is replaced by another": by(chosen & low, never, *values),
            "no patch is left as it is: those above 0.9 are replaced, too": by(
                chosen & low, chosen & ~low, *values
            ),
            "no patch is left as it is: those above 0.9 are masked": by(
                chosen & (low | high), chosen & ~low & ~high, *values
            ),
            "shares have changed places: below 0.8 stands the mask token, from 0.8 to 0.9 another patch": by(
                chosen & ~low & ~high, chosen & low, *values
            ),
            "the order is turned round: 0.1 and 0.2 are the limits here": by(
                chosen & (fate >= 0.2), chosen & (fate < 0.1), *values
            ),
            "from 0.9 on stands another patch, and those from 0.8 to 0.9 stay; it is the other way round": by(
                chosen & low, chosen & high, *values
            ),
            "the mask token is added to the patch; it takes its place": torch.where(
                (chosen & low)[..., None], embeddings + token, right
            ),
            "zeros stand where the mask token belongs": torch.where(
                (chosen & low)[..., None], torch.zeros(dim), right
            ),
            "the other patch is added; it takes the place": torch.where(
                (chosen & ~low & ~high)[..., None], embeddings + others, right
            ),
            "only the corrupted patches are returned; the others belong to the sequence": right[chosen],
            "nothing is corrupted": embeddings.clone(),
        }
        label = f"embeddings of shape {tuple(embeddings.shape)}, half of them chosen"
        cases.append(Case((*values, chosen, fate), right, mistakes, label))
    judge_function(CORRUPTED, function, ours, cases, [])


@check(MASKED_LOSS)
def masked_loss(function: Callable[[Tensor, Tensor, Tensor], Tensor]) -> None:
    """Check a function ``(logits, targets, chosen)``: the mean cross-entropy of the chosen patches alone.

    Logits are (B, N, K), targets (B, N) class numbers, `chosen` (B, N) is true for as many patches of each
    image; the result is a single number.

    Raises:
        CheckFailed: if it differs; the message names a mean over other patches, or a sum.
    """

    def ours(logits: Tensor, targets: Tensor, chosen: Tensor) -> Tensor:
        return F.cross_entropy(logits[chosen], targets[chosen])

    cases = []
    for batch, count, classes in [(2, 10, 7), (3, 8, 5), (4, 12, 9)]:
        logits = 2 * torch.randn(batch, count, classes)
        targets = torch.randint(classes, (batch, count))
        chosen = torch.rand(batch, count).argsort(1) < count // 3 + 1  # not half: more of one kind
        each = F.cross_entropy(logits.mT, targets, reduction="none")
        right = ours(logits, targets, chosen)
        zeroed = F.cross_entropy((logits * chosen[..., None]).flatten(0, 1), targets.flatten())
        mistakes = {
            "all patches count; only the corrupted ones may": each.mean(),
            "the patches that the model sees count; the corrupted ones may": each[~chosen].mean(),
            "the losses are added up; take their mean": each[chosen].sum(),
            "the sum is divided by all patches; divide by the corrupted ones": (each * chosen).mean(),
            "the sum is divided by the images; divide by the corrupted patches": each[chosen].sum() / batch,
            "the logits of the other patches are set to zero; they still count, as a loss of ln K": zeroed,
            "softmax is taken twice: cross_entropy takes logits": F.cross_entropy(
                logits[chosen].softmax(-1), targets[chosen]
            ),
            "the sign is turned": -right,
            "these are the losses of the single patches; return their mean": each[chosen],
            "these are the losses of the images; return one number": (each * chosen).sum(1) / chosen.sum(1),
            "this is the share of right answers; return the loss": (logits.argmax(-1) == targets)[chosen]
            .float()
            .mean(),
            "the loss is in bits; it is in nats, with the natural logarithm": right / torch.tensor(2.0).log(),
            "the first half of the patches counts; those that `chosen` marks do": each[
                :, : count // 2
            ].mean(),
        }
        label = f"logits of shape {tuple(logits.shape)}, {int(chosen[0].sum())} patches of each image chosen"
        cases.append(Case((logits, targets, chosen), right, mistakes, label))
    judge_function(MASKED_LOSS, function, ours, cases, [])
