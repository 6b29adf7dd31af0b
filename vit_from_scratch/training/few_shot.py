"""Few-shot accuracy as in the paper (section 4.1): least squares on frozen features, in closed form."""

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from scipy.special import stdtrit
from torch import Tensor

from vit_from_scratch.errors import InputError
from vit_from_scratch.inputs import require_labels, require_tensor
from vit_from_scratch.settings import require

PENALTIES = (1.0, 10.0, 100.0, 1000.0)
"""What a draw chooses its penalty from, for features of standard deviation 1."""


@dataclass(frozen=True)
class FewShot:
    """Accuracies of a classifier that has seen k images of each class, over several draws of these images.

    Attributes:
        shots: images per class, k.
        accuracies: one per draw, 0 to 1.
    """

    shots: int
    accuracies: tuple[float, ...]

    @property
    def mean(self) -> float:
        """The mean over the draws."""
        return statistics.fmean(self.accuracies)

    @property
    def interval(self) -> tuple[float, float]:
        """The ends of the 95 % interval of the mean over draws (Student's t); NaN for a single draw."""
        count = len(self.accuracies)
        if count < 2:
            return math.nan, math.nan
        half = float(stdtrit(count - 1, 0.975)) * statistics.stdev(self.accuracies) / math.sqrt(count)
        return self.mean - half, self.mean + half


def ridge_classifier(
    features: Tensor, labels: Tensor, classes: int, penalty: float = 1.0
) -> tuple[Tensor, Tensor]:
    """Fit the linear map from features to targets of -1 and 1 that has the least squared error.

    .. math:: \\min_{W, b} \\sum_i \\lVert W^\\top x_i + b - y_i \\rVert^2 + \\lambda \\lVert W \\rVert^2,
        \\qquad y_i \\in \\{-1, 1\\}^K

    With both sides centred, b drops out and :math:`W = (X^\\top X + \\lambda I)^{-1} X^\\top Y`. With fewer
    images than features the same W is :math:`X^\\top (X X^\\top + \\lambda I)^{-1} Y`, a smaller system.

    Here X (N, D) are the features, and the penalty lambda, above 0, does not act on b.

    Returns:
        W (D, K) and b (K,), float64.
    """
    require(penalty > 0, "penalty", penalty, "a number above 0")
    inputs, targets, centre, offset = _centred(features, labels, classes)
    wide = len(inputs) < inputs.shape[1]
    gram = inputs @ inputs.T if wide else inputs.T @ inputs
    gram.diagonal().add_(penalty)
    if wide:
        weight = inputs.T @ torch.linalg.solve(gram, targets)  # (D, K)
    else:
        weight = torch.linalg.solve(gram, inputs.T @ targets)  # (D, K)
    return weight, offset - centre @ weight


def chosen_penalty(
    features: Tensor, labels: Tensor, classes: int, penalties: Sequence[float] = PENALTIES
) -> float:
    """Return the penalty with the least squared error on images that are left out one by one.

    Nothing is fitted anew for that. With H the matrix that takes targets to predictions, the error on an
    image that was left out is its error when it was not, divided by 1 - H_ii.
    """
    inputs, targets, _, _ = _centred(features, labels, classes)
    left, sizes, _ = torch.linalg.svd(inputs, full_matrices=False)  # (N, r), (r,)

    def error(penalty: float) -> float:
        shrunk = left * (sizes**2 / (sizes**2 + penalty))  # (N, r)
        own = (left * shrunk).sum(dim=1) + 1 / len(inputs)  # (N,), H_ii; 1 / N is the mean's
        return ((targets - shrunk @ (left.T @ targets)) / (1 - own)[:, None]).square().sum().item()

    return min(penalties, key=error)


def few_shot_accuracy(
    train: tuple[Tensor, Tensor],
    test: tuple[Tensor, Tensor],
    shots: int,
    draws: int = 10,
    penalty: float | None = None,
    seed: int = 0,
    class_names: Sequence[str] | None = None,
) -> FewShot:
    """Measure frozen features by classifiers that see k images of each class.

    Features are first brought to mean 0 and standard deviation 1, by those of the training features, so that
    one penalty suits any layer and model.

    Args:
        train: features (N, D) and labels (N,) to draw from.
        test: likewise, to measure on.
        shots: images per class, k.
        draws: how many times images are drawn; a draw's classifier sees no others.
        penalty: as in `ridge_classifier`; None lets each draw choose one (`chosen_penalty`). (The paper does
            not say what it takes.)
        seed: decides the draws.
        class_names: K names, in the order of the labels; without them K is the largest training label plus 1.

    Raises:
        InputError: what `check_shots` refuses, a penalty that is not above 0, or features and labels that do
            not fit.
    """
    classes = check_shots(train[1], shots, draws, class_names)
    for (features, labels), name in ((train, "training"), (test, "test")):
        require_tensor(features, f"{name} features", "(N, D)")
        require_labels(labels, len(features), classes, f"{name} labels")
    if train[0].shape[1:] != test[0].shape[1:]:
        raise InputError(
            f"features of {train[0].shape[1]} and of {test[0].shape[1]} values: expected those of one model "
            "and layer on both sides."
        )
    train, test = ((features, labels.to(features.device)) for features, labels in (train, test))
    inputs, measured = standardised(train[0], test[0])
    generator = torch.Generator().manual_seed(seed)
    accuracies = []
    for _ in range(draws):
        chosen = draw_shots(train[1], shots, generator)  # (K k,)
        shown, known = inputs[chosen], train[1][chosen]
        taken = chosen_penalty(shown, known, classes) if penalty is None else penalty
        weight, offset = ridge_classifier(shown, known, classes, taken)
        found = (measured.double() @ weight + offset).argmax(dim=1)
        accuracies.append((found == test[1]).double().mean().item())
    return FewShot(shots, tuple(accuracies))


def check_shots(labels: Tensor, shots: int, draws: int = 10, class_names: Sequence[str] | None = None) -> int:
    """Refuse what cannot be drawn, before anything is computed; return how many classes there are, K.

    The arguments are those of `few_shot_accuracy`, with the labels (N,) of the training images.
    """
    require_tensor(labels, "training labels", "(N,) of class numbers")
    if not len(labels):
        raise InputError(f"shots = {shots} of 0 training images: expected some of each class.")
    classes = len(class_names) if class_names is not None else int(labels.max()) + 1
    require_labels(labels, None, classes, "training labels")
    smallest, rarest = torch.bincount(labels, minlength=classes).min(dim=0)
    name = class_names[int(rarest)] if class_names is not None else f"class {rarest}"
    require(bool(smallest > 0), f"images of {name} to draw from", 0, "some of each class; take images of all")
    expected = f"1 to {smallest}, the images of {name}, the smallest class to draw from"
    require(1 <= shots <= int(smallest), "shots", shots, expected)
    require(draws >= 1, "draws", draws, "at least 1")
    return classes


def draw_shots(labels: Tensor, shots: int, generator: torch.Generator) -> Tensor:
    """Draw k images of each class, none twice; return their numbers, (K k,)."""
    order = torch.randperm(len(labels), generator=generator).to(labels.device)
    by_class = order[torch.argsort(labels[order], stable=True)]  # class by class, at random within
    counts = torch.bincount(labels)
    starts = counts.cumsum(0) - counts  # (K,)
    return by_class[(starts[:, None] + torch.arange(shots, device=labels.device)).flatten()]


def standardised(train: Tensor, *others: Tensor) -> tuple[Tensor, ...]:
    """Bring features (N, D) to mean 0 and standard deviation 1, by the first ones'; a constant becomes 0."""
    mean, std = train.mean(dim=0), train.std(dim=0)
    rounding = 16 * torch.finfo(std.dtype).eps * mean.abs()
    scale = torch.where(std > rounding, 1 / std, 0.0)
    return tuple((features - mean) * scale for features in (train, *others))


def _centred(features: Tensor, labels: Tensor, classes: int) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Return features (N, D) and targets of -1 and 1 (N, K) less their means, and these, in float64."""
    inputs, known = features.double(), F.one_hot(labels.to(features.device).long(), classes)
    targets = 2 * known.double() - 1
    centre, offset = inputs.mean(dim=0), targets.mean(dim=0)  # (D,), (K,)
    return inputs - centre, targets - offset, centre, offset
