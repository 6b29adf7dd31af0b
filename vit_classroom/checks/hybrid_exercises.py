"""Checks of chapter 7's exercises: windows, the price of an accuracy, and a unit that norms first."""

import math
from collections.abc import Callable, Sequence

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from vit_classroom.checks.hybrid import CONFIG
from vit_classroom.checks.judging import check, judge_function, judge_module
from vit_classroom.checks.report import Case, Piece, randomise
from vit_from_scratch.model import hybrid

Layers = Sequence[tuple[int, int, int]]
"""Kernel, stride and padding before, of each layer from the photo on."""

WINDOW = Piece(
    "window",
    "window(places, layers)",
    "(K, 2)",
    'chapter 7, exercise "Which pixels does a place see?"',
    exact=True,
    gradients=False,
)
COST = Piece(
    "first_cost",
    "first_cost(costs, accuracies, wanted)",
    "(K,)",
    'chapter 7, exercise "Two to four times cheaper"',
    gradients=False,
)
PRE_ACTIVATION = Piece(
    "PreActivation",
    "PreActivation(channels, width, stride)",
    "(B, 4 width, H', W')",
    'chapter 7, exercise "A unit that norms first"',
)


@check(WINDOW)
def window(function: Callable[[Tensor, Layers], Tensor]) -> None:
    """Check a function ``(places, layers)`` that gives the first and the last pixel row of each window.

    Places are (K,) row numbers of the last map, layers (kernel, stride, padding before), the first one next
    to the photo; the result is (K, 2), int64.

    Raises:
        CheckFailed: if it differs; the message names layers in the wrong order, or an edge that is off.
    """
    cases = []
    for layers in (
        ((3, 2, 0),),
        ((7, 2, 2), (3, 1, 1)),
        ((5, 3, 1), (3, 2, 0), (1, 2, 0), (3, 1, 1)),
    ):
        places = torch.randint(0, 20, (len(layers) + 2,))

        def edges(
            step: Callable[[Tensor, Tensor, int, int, int], tuple[Tensor, Tensor]],
            layers: Layers = layers,
            places: Tensor = places,
        ) -> Tensor:
            first = last = places
            for kernel, stride, padding in reversed(layers):
                first, last = step(first, last, kernel, stride, padding)
            return torch.stack([first, last], dim=1)

        right = _window(places, layers)
        mistakes = {
            "the layers are followed from the photo on; start at the last map, so at the last layer": edges(
                lambda a, b, k, s, p: (a * s - p, b * s - p + k - 1), layers[::-1]
            ),
            "each layer's last row is one too far; a kernel of k reaches k - 1 rows beyond its first": edges(
                lambda a, b, k, s, p: (a * s - p, b * s - p + k)
            ),
            "the padding is added; it lies before the map, so it is taken away": edges(
                lambda a, b, k, s, p: (a * s + p, b * s + p + k - 1)
            ),
            "the padding is left out": edges(lambda a, b, k, s, p: (a * s, b * s + k - 1)),
            "the stride is left out": edges(lambda a, b, k, s, p: (a - p, b - p + k - 1)),
            "the padding is multiplied by the stride; it counts rows of the finer map": edges(
                lambda a, b, k, s, p: ((a - p) * s, (b - p) * s + k - 1)
            ),
            "a layer's window grows from its first row alone; follow its last row, too": edges(
                lambda a, b, k, s, p: (a * s - p, a * s - p + k - 1)
            ),
            "the window lies evenly around the place; it begins at place * stride - padding": edges(
                lambda a, b, k, s, p: (a * s - (k - 1) // 2, b * s + k // 2)
            ),
            "the first row and the side of the window; asked for are its first and its last row": torch.stack(
                [right[:, 0], right[:, 1] - right[:, 0] + 1], dim=1
            ),
            "last and first row have changed places": right.flip(1),
            "rows and edges have changed places; the result is (K, 2)": right.T,
            "the window is cut off at row 0; rows of padding count, and have numbers below 0": right.clamp(
                min=0
            ),
        }
        label = f"places {places.tolist()} and layers {layers}"
        cases.append(Case((places, layers), right, mistakes, label))
    judge_function(WINDOW, function, _window, cases, [])


def _window(places: Tensor, layers: Layers) -> Tensor:
    first = last = places
    for kernel, stride, padding in reversed(layers):
        first, last = first * stride - padding, last * stride - padding + kernel - 1
    return torch.stack([first, last], dim=1)


@check(COST)
def first_cost(function: Callable[[Tensor, Tensor, Tensor], Tensor]) -> None:
    """Check a function ``(costs, accuracies, wanted)``: where a line through runs first reaches an accuracy.

    Costs (n,) rise, accuracies (n,) need not always; the line is straight on a logarithmic axis of costs; of
    each accuracy that is wanted, (K,), the result has the smallest cost at which the line is as high.

    Raises:
        CheckFailed: if it differs; the message names a linear axis, or a run in place of the line.
    """
    cases = []
    for dips in (False, True, True):
        count = 6
        costs = (0.3 + torch.rand(count)).cumsum(0).mul(1.2).exp()
        accuracies = 70 + (1 + 2 * torch.rand(count)).cumsum(0)
        if dips:
            accuracies[2] = accuracies[3] + 0.3 + 0.5 * torch.rand(())  # as ViT-L/32 and B/16 in Table 6
        top = accuracies.max()
        wanted = accuracies[0] + (top - accuracies[0]) * (0.05 + 0.9 * torch.rand(7))
        if dips:
            wanted[0] = (accuracies[4] + accuracies[5]) / 2
            wanted[1] = (accuracies[2] + accuracies[3]) / 2  # the line has it three times
        label = f"{count} runs" + (", of which one is worse than a cheaper one" if dips else "")
        right = _crossings(costs, accuracies, wanted)
        logs = costs.log()
        rank = np.argsort(accuracies.numpy())
        mistakes = {
            "the line is straight in the cost; on a logarithmic axis it is straight in log(cost)": _crossings(
                costs, accuracies, wanted, scale=lambda x: x, back=lambda x: x
            ),
            "that is the cost of the first run that is good enough; the line reaches the accuracy before": (
                _crossings(costs, accuracies, wanted, place=lambda share: 1.0)
            ),
            "that is the cost of the run before; the line reaches the accuracy after it": _crossings(
                costs, accuracies, wanted, place=lambda share: 0.0
            ),
            "that is the run whose accuracy is nearest; take the line between two runs": costs[
                (accuracies - wanted[:, None]).abs().argmin(1)
            ],
            "the two ends of the piece of line have changed their shares": _crossings(
                costs, accuracies, wanted, place=lambda share: 1 - share
            ),
            "that is the logarithm of the cost; take exp of it": right.log(),
            "that is the logarithm of the cost, to base 10; take 10 to its power": right.log10(),
            "that is the last place at which the line has this accuracy; take the first": _crossings(
                costs, accuracies, wanted, last=True
            ),
            "np.interp needs accuracies that rise from run to run, and these do not": torch.from_numpy(
                np.exp(np.interp(wanted.numpy(), accuracies.numpy(), logs.numpy()))
            ).float(),
            "the runs are put in order of accuracy, which makes another line; they stay in order of cost": (
                torch.from_numpy(
                    np.exp(np.interp(wanted.numpy(), accuracies.numpy()[rank], logs.numpy()[rank]))
                ).float()
            ),
        }
        cases.append(Case((costs, accuracies, wanted), right, mistakes, label))
    judge_function(COST, function, _crossings, cases, [])


def _crossings(
    costs: Tensor,
    accuracies: Tensor,
    wanted: Tensor,
    scale: Callable[[float], float] = math.log,
    back: Callable[[float], float] = math.exp,
    place: Callable[[float], float] = lambda share: share,
    last: bool = False,
) -> Tensor:
    """Where the line first (or last) rises to each accuracy; the rest are wrong ways to read it."""
    found = []
    heights, prices = accuracies.tolist(), [scale(cost) for cost in costs.tolist()]
    for height in wanted.tolist():
        rises = [
            i
            for i in range(1, len(heights))
            if min(heights[i - 1 : i + 1]) <= height <= max(heights[i - 1 : i + 1])
        ]
        i = rises[-1 if last else 0]
        share = place((height - heights[i - 1]) / (heights[i] - heights[i - 1]))
        found.append(back((1 - share) * prices[i - 1] + share * prices[i]))
    return torch.tensor(found)


@check(PRE_ACTIVATION)
def pre_activation(cls: Callable[[int, int, int], object]) -> None:
    """Check a class of residual units in which norm and ReLU come before each convolution.

    It is called as ``cls(channels, width, stride)``; submodules ``norm1``, ``conv1`` to ``norm3``, ``conv3``,
    and ``shortcut``, a convolution where stride or width changes and `nn.Identity()` where nothing does.

    Raises:
        CheckFailed: if parameters or results differ; the message names a ReLU or a norm out of place.
    """
    for channels, stride in [(32, 1), (16, 2)]:
        reference = _PreActivation(channels, 8, stride)
        randomise(reference)

        def cases(reference: _PreActivation = reference, channels: int = channels) -> list[Case]:
            features = torch.randn(2, channels, 6, 6)
            label = f"features of shape {tuple(features.shape)}"
            mistakes = _pre_activation_mistakes(reference, features)
            return [Case((features,), reference(features), mistakes, label)]

        judge_module(PRE_ACTIVATION, cls, (channels, 8, stride), reference, cases)


class _PreActivation(nn.Module):
    """The unit of BiT's ResNets (He et al., 2016, "Identity mappings")."""

    def __init__(self, channels: int, width: int, stride: int) -> None:
        super().__init__()
        self.norm1, self.conv1 = hybrid.norm(CONFIG, channels), hybrid.conv(CONFIG, channels, width, 1)
        self.norm2, self.conv2 = hybrid.norm(CONFIG, width), hybrid.conv(CONFIG, width, width, 3, stride)
        self.norm3, self.conv3 = hybrid.norm(CONFIG, width), hybrid.conv(CONFIG, width, 4 * width, 1)
        self.changes = stride != 1 or channels != 4 * width
        self.shortcut = hybrid.conv(CONFIG, channels, 4 * width, 1, stride) if self.changes else nn.Identity()

    def branch(self, start: Tensor, second: Callable[[Tensor], Tensor] = F.relu) -> Tensor:
        """What the three convolutions make of features that are normed and through a ReLU."""
        return self.conv3(F.relu(self.norm3(self.conv2(second(self.norm2(self.conv1(start)))))))

    def forward(self, features: Tensor) -> Tensor:
        start = F.relu(self.norm1(features))
        return (self.shortcut(start) if self.changes else features) + self.branch(start)


def _pre_activation_mistakes(reference: _PreActivation, features: Tensor) -> dict[str, Tensor]:
    """What each wrong wiring of the layers gives."""
    start = F.relu(reference.norm1(features))
    inner = reference.branch(start)
    normed = reference.norm1(features)
    past = reference.shortcut(start) if reference.changes else features
    late = reference.branch(reference.norm1(F.relu(features)))
    mistakes = {
        "a ReLU follows the sum; in a pre-activation unit nothing does": F.relu(past + inner),
        "the input is not added": inner,
        "the first ReLU is missing": past + reference.branch(normed),
        "the second ReLU is missing": past + reference.branch(start, lambda x: x),
        "the first norm and ReLU are missing": past + reference.branch(features),
        "the first ReLU stands before its norm; norm, ReLU, convolution is the order": past + late,
    }
    if reference.changes:
        mistakes |= {
            "the shortcut's convolution reads the features as they came; it reads them after the first norm "
            "and ReLU": reference.shortcut(features) + inner,
            "the shortcut's convolution reads the features after the norm; a ReLU comes between": (
                reference.shortcut(normed) + inner
            ),
        }
    else:
        mistakes[
            "what is added has been through the first norm and ReLU; without a convolution the path stays "
            "as it came"
        ] = start + inner
    return mistakes
