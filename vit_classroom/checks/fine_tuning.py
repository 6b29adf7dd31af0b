"""Checks of chapter 10: what moves a trained model to other images, and classifiers on what it sees."""

import torch
import torch.nn.functional as F
from einops import rearrange
from torch import Tensor

from vit_classroom.checks.judging import function_check
from vit_classroom.checks.report import Case


def _grey_weight(weight: Tensor, patch_size: int) -> Tensor:
    return rearrange(weight, "d (p c) -> d p c", c=3).sum(dim=2)


@function_check(
    "(D, P P)", 'chapter 10, "Fewer colours"', _grey_weight, [(4, 2), (3, 4), (6, 3)], gradients=False
)
def grey_weight(dim: int, size: int) -> Case:
    """Check a function ``(weight, patch_size)`` that fits a patch embedding for photos to grey images.

    The weight is (D, P P 3), a patch's values in the order row, column, colour; the result is (D, P P).
    """
    weight = torch.randn(dim, size * size * 3)
    right = _grey_weight(weight, size)
    by_colour = weight.view(dim, 3, size * size)  # the wrong order
    colours = weight.view(dim, size * size, 3)
    luma = colours * torch.tensor([0.299, 0.587, 0.114])
    turned = rearrange(right, "d (p q) -> d (q p)", p=size)
    mistakes = {
        "it is the mean over the colours; a grey image shows its value three times, so add the weights": right
        / 3,
        "the colours are weighed as the eye does; a photo of three equal "
        "channels gets the plain sum": luma.sum(2),
        "the weights are read colour by colour; a patch's values come pixel by pixel, each with three "
        "colours": by_colour.sum(1),
        "they are averaged, and read colour by colour; the values come pixel by pixel": by_colour.mean(1),
        "only the first colour is kept; all three see the grey value": colours[..., 0],
        "only the second colour is kept; all three see the grey value": colours[..., 1],
        "only the first third of each row is kept": weight[:, : size * size],
        "the sum runs over the outputs; it runs over the colours": weight.sum(0, keepdim=True),
        "rows and columns of the patch have changed places": turned,
        "it is transposed: (D, P P)": right.T,
    }
    return Case((weight, size), right, mistakes)


def _least_squares(features: Tensor, targets: Tensor, penalty: float) -> Tensor:
    gram = features.T @ features + penalty * torch.eye(features.shape[1], dtype=features.dtype)
    return torch.linalg.solve(gram, features.T @ targets)


@function_check(
    "(D, K)",
    'chapter 10, "Few labels"',
    _least_squares,
    [(12, 5, 3, 2.0), (9, 4, 5, 0.5), (5, 8, 3, 2.0)],
    gradients=False,
)
def least_squares(count: int, width: int, classes: int, penalty: float) -> Case:
    """Check a function ``(features, targets, penalty)``: regularised least squares in closed form.

    Features X are (N, D), targets Y (N, K), float64; to centre them again does no harm. The result W (D, K)
    has the least ``((X W - Y)**2).sum() + penalty * (W**2).sum()``.
    """
    features = torch.randn(count, width, dtype=torch.float64)
    targets = torch.randn(count, classes, dtype=torch.float64)
    right = _least_squares(features, targets, penalty)
    diagonal = penalty * torch.eye(width, dtype=torch.float64)
    gram, mixed = features.T @ features, features.T @ targets

    def with_penalty(penalty: float) -> Tensor:
        return _least_squares(features, targets, penalty)

    of_features = _least_squares(features - features.mean(0), targets, penalty)
    of_targets = _least_squares(features, targets - targets.mean(0), penalty)
    mistakes = {
        "the penalty is missing": torch.linalg.pinv(features) @ targets,
        "the penalty is squared": with_penalty(penalty**2),
        "the penalty acts on the mean of the errors; the equation has the sum": with_penalty(penalty * count),
        "the penalty is divided by the number of images": with_penalty(penalty / count),
        "the penalty is taken twice": with_penalty(2 * penalty),
        # with fewer images than values it is singular but for rounding, and `solve` may refuse it
        "the penalty is added to every value of the matrix; it goes on the diagonal": torch.linalg.solve_ex(
            gram + penalty, mixed
        ).result,
        "the penalty is subtracted": torch.linalg.solve(gram - diagonal, mixed),
        "these are features' @ targets; the matrix is still to be divided by": mixed,
        "the matrix is not inverted: solve for W": (gram + diagonal) @ mixed,
        "only the diagonal of the matrix is inverted; features are correlated": mixed
        / (gram + diagonal).diagonal()[:, None],
        "these are the predictions X W; return W": features @ right,
    }
    inputs = (features, targets, penalty)
    centred_again = [Case(inputs, of_features), Case(inputs, of_targets)]
    return Case(inputs, right, mistakes, others=centred_again)


def _means(features: Tensor, labels: Tensor) -> Tensor:
    classes = int(labels.max()) + 1
    return torch.stack([features[labels == k].mean(0) for k in range(classes)])


def _nearest_mean(features: Tensor, labels: Tensor, queries: Tensor) -> Tensor:
    return torch.cdist(queries, _means(features, labels)).argmin(dim=1)


@function_check(
    "(M,), a class number for each query",
    'chapter 10, exercise "Nearest mean"',
    _nearest_mean,
    [(30, 3, 4, 60), (25, 5, 3, 50), (40, 2, 5, 70)],
    exact=True,
    gradients=False,
)
def nearest_mean(count: int, width: int, classes: int, asked: int) -> Case:
    """Check a function ``(features, labels, queries)``: each query gets the class whose mean is nearest.

    Features are (N, D) with labels (N,) from 0 to K - 1, queries (M, D); the result is (M,) class numbers.
    """
    labels = torch.cat([torch.arange(classes), torch.randint(classes, (count - classes,))])
    features = torch.randn(count, width) + 1.5 + 1.2 * torch.randn(classes, width)[labels]
    queries = torch.randn(asked, width) + 1.5
    centres = _means(features, labels)
    distances = torch.cdist(queries, centres)
    single = torch.cdist(queries, features)
    cosines = F.cosine_similarity(queries[:, None], centres, dim=2)
    sums = torch.stack([features[labels == k].sum(0) for k in range(classes)])
    to_sums, by_value = torch.cdist(queries, sums), torch.cdist(queries, centres, p=1)
    to_all = torch.stack([single[:, labels == k].mean(1) for k in range(classes)], 1)
    mistakes = {
        "the nearest single image decides; take the mean of each class first": labels[single.argmin(1)],
        "the class whose mean is farthest is taken: argmin, not argmax": distances.argmax(1),
        "the largest dot product decides; take the distance": (queries @ centres.T).argmax(1),
        "the cosine decides; take the distance": cosines.argmax(1),
        "the sums of the classes stand for their means": to_sums.argmin(1),
        "distances are added up value by value (L1); take Euclid's": by_value.argmin(1),
        "these are the distances; return the number of the nearest class": distances.long(),
        "these are the distances to the nearest mean; return its class number": distances.amin(1).long(),
        "these are class means, one a query; return their numbers": centres[distances.argmin(1)].long(),
        "the number of the nearest image is returned; its class is wanted, and of means": single.argmin(1),
        "for each class a query is returned; for each query a class is wanted": distances.argmin(0),
        "the class with the least mean distance to its images is taken; take its mean's": to_all.argmin(1),
    }
    return Case((features, labels, queries), _nearest_mean(features, labels, queries), mistakes)


def _running(weights: Tensor, decay: float, first: Tensor) -> Tensor:
    for now in weights:
        first = decay * first + (1 - decay) * now
    return first


def _polyak(weights: Tensor, decay: float) -> Tensor:
    return _running(weights[1:], decay, weights[0])


@function_check(
    "(...), one set of weights",
    'chapter 10, exercise "Averages of weights"',
    _polyak,
    [((5, 3, 4), 0.9), ((7, 6), 0.6), ((4, 2, 3, 2), 0.9), ((1, 5), 0.9)],
    gradients=False,
)
def polyak(shape: tuple[int, ...], decay: float) -> Case:
    """Check a function ``(weights, decay)``: the running mean of the weights after each step.

    Weights are (S, ...), as they were after each of S steps; the mean begins as the first of them.
    """
    weights = torch.randn(shape)
    steps = shape[0]
    from_zero = _running(weights, decay, torch.zeros(shape[1:]))
    whole = _running(weights / (1 - decay), decay, torch.zeros(shape[1:]))
    two, each = _polyak(weights[-2:], decay), [_polyak(weights[: k + 1], decay) for k in range(steps)]
    mistakes = {
        "the shares have changed places: the mean keeps `decay` of itself": _polyak(weights, 1 - decay),
        "the mean begins at zero; it begins as the first weights": from_zero,
        "the mean begins at zero and is divided by what is missing, as in Adam; here it begins as the "
        "first weights": from_zero / (1 - decay**steps),
        "all weights count alike; later ones count more": weights.mean(0),
        "these are the last weights": weights[-1],
        "these are the first weights": weights[0],
        "only the last two are mixed; the mean goes on from step to step": two,
        "the steps are walked through backwards": _polyak(weights.flip(0), decay),
        "the new weights come in whole; they bring 1 - decay": whole,
        "the means after all steps are returned; the last one is wanted": torch.stack(each),
    }
    if steps > 1:
        mistakes |= {
            "the last weights are left out": _polyak(weights[:-1], decay),
            "the first weights are left out": _polyak(weights[1:], decay),
        }
    return Case((weights, decay), _polyak(weights, decay), mistakes)


def _pulls(features: Tensor, labels: Tensor, classes: int, chance: float) -> Tensor:
    """Sum features, times target less probability: the way of each row down the summed loss, (K, D)."""
    return (F.one_hot(labels, classes).to(features.dtype) - chance).T @ features


def _first_step(features: Tensor, labels: Tensor, classes: int, rate: float) -> Tensor:
    return rate / len(labels) * _pulls(features, labels, classes, 1 / classes)


@function_check(
    "(classes, D)",
    'chapter 10, exercise "The first step from zero"',
    _first_step,
    [(5, 3, 0.5, False), (4, 5, 0.1, True), (6, 4, 2.0, False)],
    gradients=False,
)
def first_step(width: int, classes: int, rate: float, absent: bool) -> Case:
    """Check a function ``(features, labels, classes, rate)``: a linear head of zeros after one step of SGD.

    Features are (N, D) with labels (N,) from 0 to classes - 1; the head has no bias, the loss is the mean
    cross-entropy, and the result are the weights (classes, D). A class may have many labels, few or none.
    """
    counts = 1 + torch.randperm(classes)
    if absent:
        counts[-1] = 0
    labels = torch.arange(classes).repeat_interleave(counts)
    labels = labels[torch.randperm(len(labels))]
    count, found = len(labels), int(labels.max()) + 1
    features = torch.randn(count, width) + 1
    right = _first_step(features, labels, classes, rate)
    sums, middle = _pulls(features, labels, classes, 0), features.mean(0)
    mistakes = {
        "the step goes up the gradient: the sign is turned": -right,
        "the probabilities are taken as 0; a head of zeros gives each class 1 / classes": rate / count * sums,
        "the probabilities are taken as 1/2, as from a sigmoid; softmax gives each class 1 / classes": (
            rate / count * _pulls(features, labels, classes, 0.5)
        ),
        "the targets are missing; only the probabilities are there": (
            -rate / classes * middle.expand(classes, -1)
        ),
        "it is transposed: (classes, D)": right.T,
        "the rate is missing": right / rate,
        "the loss is summed here; it is the mean over all N images": right * count,
        "the rate is missing, and the loss is summed; it is the mean over all N images": right / rate * count,
        "it is divided by N and by the classes; the loss is the mean over the N images": right / classes,
        "it is divided by the classes; the loss is the mean over the N images": right * count / classes,
        "this is the gradient; return the weights after the step": -right / rate,
        "the classes are counted in the labels, and one may be absent: `classes` says how many": _first_step(
            features, labels, found, rate
        ),
    }
    each = counts[:, None]
    for size, but in ((each.clamp(min=1), ""), (each, ", which is 0 / 0 where there is none")):
        means = sums / size
        mistakes |= {
            f"each row is averaged over its class's images{but}; take all N": right * count / size,
            f"each class is averaged over its own images{but}; take all N": rate * (means - middle / classes),
            f"it is a mean of each class{but}, less the overall mean; take sums, divided by N": (
                rate * (means - middle)
            ),
            f"it is a mean of each class{but}, less the overall mean, as if all classes were of one size": (
                rate / classes * (means - middle)
            ),
            f"it is a mean of each class{but}; take sums, divided by N, less the overall sum's share": rate
            * means,
        }
    return Case((features, labels, classes, rate), right, mistakes)
