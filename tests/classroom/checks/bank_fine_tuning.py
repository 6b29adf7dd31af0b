"""Right and wrong answers to the pieces of chapter 10."""

import torch
from einops import rearrange, reduce

from vit_classroom import checks


# Fewer colours
def grey_by_view(weight, patch_size):
    return weight.view(len(weight), patch_size**2, 3).sum(-1)


def grey_by_reduce(weight, patch_size):
    return reduce(weight, "d (p c) -> d p", "sum", c=3)


def grey_by_slices(weight, patch_size):
    return weight[:, 0::3] + weight[:, 1::3] + weight[:, 2::3]


def grey_by_product(weight, patch_size):
    thrice = torch.eye(patch_size**2).repeat_interleave(3, dim=0)  # (P P 3, P P)
    return weight @ thrice


# Few labels
def squares_by_inverse(features, targets, penalty):
    matrix = features.T @ features + penalty * torch.eye(features.shape[1], dtype=features.dtype)
    return matrix.inverse() @ features.T @ targets


def squares_by_rows(features, targets, penalty):
    """The smaller system when there are fewer images than features; the same answer."""
    gram = features @ features.T + penalty * torch.eye(len(features), dtype=features.dtype)
    return features.T @ torch.linalg.solve(gram, targets)


def squares_by_more_rows(features, targets, penalty):
    """The penalty as further images: sqrt(penalty) times the unit vectors, all with target 0."""
    width = features.shape[1]
    more = penalty**0.5 * torch.eye(width, dtype=features.dtype)
    none = torch.zeros(width, targets.shape[1], dtype=targets.dtype)
    return torch.linalg.lstsq(torch.cat([features, more]), torch.cat([targets, none])).solution


def squares_by_singular_values(features, targets, penalty):
    u, s, v = torch.linalg.svd(features, full_matrices=False)
    return v.T @ torch.diag(s / (s**2 + penalty)) @ u.T @ targets


def squares_with(change):
    """Return an answer with the matrix, the right side and the result open to mistakes."""

    def function(features, targets, penalty):
        return change(features, targets, penalty, torch.eye(features.shape[1], dtype=features.dtype))

    return function


# Nearest mean
def means_of(features, labels):
    return torch.stack([features[labels == k].mean(0) for k in range(int(labels.max()) + 1)])


def nearest_by_cdist(features, labels, queries):
    return torch.cdist(queries, means_of(features, labels)).argmin(1)


def nearest_by_sums(features, labels, queries):
    classes = int(labels.max()) + 1
    sums = torch.zeros(classes, features.shape[1]).index_add_(0, labels, features)
    means = sums / labels.bincount()[:, None]
    return ((queries[:, None] - means) ** 2).sum(-1).argmin(1)


def nearest_in_loops(features, labels, queries):
    means = means_of(features, labels)
    return torch.tensor([min(range(len(means)), key=lambda k: (q - means[k]).norm()) for q in queries])


def nearest_by_products(features, labels, queries):
    """The squared distance less what all classes share: |m|^2 - 2 q m."""
    means = means_of(features.double(), labels)
    return (means.square().sum(1) - 2 * queries.double() @ means.T).argmin(1)


def unit(values):
    return values / values.norm(dim=1, keepdim=True)


# Averages of weights
def polyak_by_loop(weights, decay):
    mean = weights[0]
    for now in weights[1:]:
        mean = decay * mean + (1 - decay) * now
    return mean


def polyak_by_lerp(weights, decay):
    mean = weights[0]
    for step in range(1, len(weights)):
        mean = torch.lerp(mean, weights[step], 1 - decay)
    return mean


def polyak_by_powers(weights, decay):
    steps = len(weights)
    shares = (1 - decay) * decay ** torch.arange(steps - 1, -1, -1.0)
    shares[0] = decay ** (steps - 1)
    return torch.einsum("s,s...->...", shares, weights)


def polyak_of_later_steps(weights, decay):
    previous = weights[0]
    for now in weights[1:]:
        mean = decay * previous + (1 - decay) * now
        previous = mean
    return mean


def from_zero(weights, decay):
    mean = torch.zeros_like(weights[0])
    for now in weights:
        mean = decay * mean + (1 - decay) * now
    return mean


# The first step from zero
def step_by_targets(features, labels, classes, rate):
    targets = torch.nn.functional.one_hot(labels, classes).float()
    return rate / len(features) * (targets - 1 / classes).T @ features


def step_by_autograd(features, labels, classes, rate):
    """What torch's own optimiser makes of it."""
    head = torch.nn.Linear(features.shape[1], classes, bias=False)
    torch.nn.init.zeros_(head.weight)
    torch.nn.functional.cross_entropy(head(features), labels).backward()
    torch.optim.SGD(head.parameters(), lr=rate).step()
    return head.weight.detach()


def step_by_sums(features, labels, classes, rate):
    sums = torch.zeros(classes, features.shape[1]).index_add_(0, labels, features)
    return rate / len(features) * (sums - features.sum(0) / classes)


def step_in_loops(features, labels, classes, rate):
    weight = torch.zeros(classes, features.shape[1])
    for y, label in zip(features, labels, strict=True):
        for k in range(classes):
            weight[k] -= rate / len(features) * (1 / classes - float(k == label)) * y
    return weight


def step_with(change):
    """Return an answer that makes this of the sum of each class, the sum of all and the sizes of classes."""

    def function(features, labels, classes, rate):
        sums = torch.stack([features[labels == k].sum(0) for k in range(classes)])
        sizes = labels.bincount(minlength=classes)[:, None]
        return change(sums, features.sum(0), sizes, len(features), classes, rate)

    return function


RIGHT = {
    checks.grey_weight: (
        grey_by_view,
        grey_by_reduce,
        grey_by_slices,
        grey_by_product,
        torch.no_grad()(grey_by_view),
    ),
    checks.least_squares: (
        squares_by_inverse,
        squares_by_rows,
        squares_by_more_rows,
        squares_by_singular_values,
        lambda x, y, p: squares_by_inverse(x - x.mean(0), y, p),  # centred already, so it does no harm
        lambda x, y, p: squares_by_inverse(x, y - y.mean(0), p),
        lambda x, y, p: squares_by_inverse(x - x.mean(0), y - y.mean(0), p),
    ),
    checks.nearest_mean: (nearest_by_cdist, nearest_by_sums, nearest_in_loops, nearest_by_products),
    checks.polyak: (polyak_by_loop, polyak_by_lerp, polyak_by_powers, torch.no_grad()(polyak_by_loop)),
    checks.first_step: (step_by_targets, step_by_autograd, step_by_sums, step_in_loops),
}

WRONG = {
    checks.first_step: [
        (lambda f, y, k, r: step_by_targets(f, y, 4, r), "right only where classes is 4"),
        (lambda f, y, k, r: step_by_targets(f, y, int(y.max()) + 1, r), "counted in the labels"),
        (lambda f, y, k, r: step_by_targets(f, y, len(y.unique()), r), "counted in the labels"),
        (step_with(lambda s, a, c, n, k, r: -r / n * (s - a / k)), "the sign is turned"),
        (step_with(lambda s, a, c, n, k, r: r / n * s), "the probabilities are taken as 0"),
        (step_with(lambda s, a, c, n, k, r: r / n * (s - a / 2)), "the probabilities are taken as 1/2"),
        (step_with(lambda s, a, c, n, k, r: -r / n * (0 * s + a / k)), "the targets are missing"),
        (step_with(lambda s, a, c, n, k, r: (r / n * (s - a / k)).T), "it is transposed"),
        (step_with(lambda s, a, c, n, k, r: (s - a / k) / n), "the rate is missing\\."),
        (step_with(lambda s, a, c, n, k, r: r * (s - a / k)), "the loss is summed here"),
        (step_with(lambda s, a, c, n, k, r: s - a / k), "the rate is missing, and the loss is summed"),
        (step_with(lambda s, a, c, n, k, r: r / n / k * (s - a / k)), "divided by N and by the classes"),
        (step_with(lambda s, a, c, n, k, r: r / k * (s - a / k)), "it is divided by the classes;"),
        (step_with(lambda s, a, c, n, k, r: (a / k - s) / n), "this is the gradient"),
        (step_with(lambda s, a, c, n, k, r: r * (s - a / k) / c), "each row.*0 / 0"),
        (step_with(lambda s, a, c, n, k, r: r * (s - a / k) / c.clamp(min=1)), "each row.*images; take"),
        (step_with(lambda s, a, c, n, k, r: r * (s / c - a / n / k)), "each class is averaged.*0 / 0"),
        (
            step_with(lambda s, a, c, n, k, r: r * (s / c.clamp(min=1) - a / n / k)),
            "each class is averaged.*images; take",
        ),
        (step_with(lambda s, a, c, n, k, r: r * (s / c - a / n)), "0 / 0.*less the overall mean; take"),
        (
            step_with(lambda s, a, c, n, k, r: r * (s / c.clamp(min=1) - a / n)),
            "each class, less the overall mean; take",
        ),
        (step_with(lambda s, a, c, n, k, r: r / k * (s / c - a / n)), "0 / 0.*as if all classes"),
        (
            step_with(lambda s, a, c, n, k, r: r / k * (s / c.clamp(min=1) - a / n)),
            "each class, less the overall mean, as if all classes",
        ),
        (step_with(lambda s, a, c, n, k, r: r * s / c), "0 / 0.*; take sums"),
        (step_with(lambda s, a, c, n, k, r: r * s / c.clamp(min=1)), "a mean of each class; take sums"),
        (lambda f, y, k, r: step_by_targets(f.sub_(1), y, k, r), "changes its input"),
        (lambda f, y, k, r: None, "is a return missing"),
    ],
    checks.grey_weight: [
        (lambda w, p: grey_by_view(w, p) / 3, "it is the mean over the colours"),
        (lambda w, p: w.view(len(w), -1, 3).mean(-1), "it is the mean over the colours"),
        (lambda w, p: w.view(len(w), -1, 3) @ torch.tensor([0.299, 0.587, 0.114]), "as the eye does"),
        (lambda w, p: w.view(len(w), 3, -1).sum(1), "read colour by colour"),
        (lambda w, p: w.view(len(w), 3, -1).mean(1), "averaged, and read colour by colour"),
        (lambda w, p: w[:, ::3], "only the first colour"),
        (lambda w, p: w[:, 1::3], "only the second colour"),
        (lambda w, p: w[:, : p * p], "only the first third"),
        (lambda w, p: w.sum(0, keepdim=True), "runs over the outputs"),
        (lambda w, p: w.sum(1, keepdim=True), "it is the sum over axis 1"),
        (lambda w, p: grey_by_view(w, p)[..., None], "its values are right: reshape them"),
        (lambda w, p: grey_by_view(w, p).view(-1, p, p), "its values are right: reshape them"),
        (
            lambda w, p: rearrange(grey_by_view(w, p), "d (p q) -> d (q p)", p=p),
            "rows and columns of the patch",
        ),
        (lambda w, p: grey_by_view(w, p).T, "it is transposed"),
        (lambda w, p: None, "is a return missing"),
    ],
    checks.least_squares: [
        (lambda x, y, p: squares_by_inverse(x, y, 2.0), "right only where.*penalty is 2.0"),
        (squares_with(lambda x, y, p, e: torch.linalg.pinv(x) @ y), "the penalty is missing"),
        (lambda x, y, p: squares_by_inverse(x, y, p**2), "the penalty is squared"),
        (lambda x, y, p: squares_by_inverse(x, y, p * len(x)), "the mean of the errors"),
        (lambda x, y, p: squares_by_inverse(x, y, p / len(x)), "divided by the number of images"),
        (lambda x, y, p: squares_by_inverse(x, y, 2 * p), "taken twice"),
        (squares_with(lambda x, y, p, e: torch.linalg.solve(x.T @ x + p, x.T @ y)), "goes on the diagonal"),
        (squares_with(lambda x, y, p, e: torch.linalg.solve(x.T @ x - p * e, x.T @ y)), "is subtracted"),
        (squares_with(lambda x, y, p, e: x.T @ y), "still to be divided by"),
        (squares_with(lambda x, y, p, e: (x.T @ x + p * e) @ (x.T @ y)), "not inverted"),
        (squares_with(lambda x, y, p, e: x.T @ y / ((x * x).sum(0) + p)[:, None]), "only the diagonal"),
        (lambda x, y, p: squares_by_inverse(x, y, p).T, "its axes stand in another order"),
        (lambda x, y, p: x @ squares_by_inverse(x, y, p), "these are the predictions"),
        (lambda x, y, p: -squares_by_inverse(x, y, p), "the sign is turned"),
        (lambda x, y, p: squares_by_inverse(x.sub_(0.0).mul_(2), y, p), "changes its input"),
    ],
    checks.nearest_mean: [
        (lambda f, y, q: nearest_by_cdist(f, y, q) + 1, "to each the same is added, 1"),
        (lambda f, y, q: y[torch.cdist(q, f).argmin(1)], "the nearest single image decides"),
        (lambda f, y, q: torch.cdist(q, means_of(f, y)).argmax(1), "farthest is taken"),
        (lambda f, y, q: (q @ means_of(f, y).T).argmax(1), "the largest dot product"),
        (lambda f, y, q: (unit(q) @ unit(means_of(f, y)).T).argmax(1), "the cosine decides"),
        (
            lambda f, y, q: torch.cdist(q, means_of(f, y) * y.bincount()[:, None]).argmin(1),
            "the sums of the classes",
        ),
        (lambda f, y, q: torch.cdist(q, means_of(f, y), p=1).argmin(1), "value by value"),
        (lambda f, y, q: torch.cdist(q, means_of(f, y)), "these are the distances; return"),
        (lambda f, y, q: torch.cdist(q, means_of(f, y)).min(1).values, "distances to the nearest mean"),
        (lambda f, y, q: means_of(f, y)[nearest_by_cdist(f, y, q)], "these are class means"),
        (lambda f, y, q: torch.cdist(q, f).argmin(1), "the number of the nearest image"),
        (lambda f, y, q: torch.cdist(q, means_of(f, y)).argmin(0), "for each class a query"),
        (
            lambda f, y, q: torch.stack(
                [torch.cdist(q, f)[:, y == k].mean(1) for k in range(int(y.max()) + 1)], 1
            ).argmin(1),
            "least mean distance",
        ),
        (lambda f, y, q: None, "is a return missing"),
    ],
    checks.polyak: [
        (lambda w, d: polyak_by_loop(w, 0.9), "right only where.*decay is 0.9"),
        (lambda w, d: polyak_by_loop(w, 1 - d), "the shares have changed places"),
        (polyak_of_later_steps, "has no value there yet.*weights of shape \\(1, 5\\)"),
        (from_zero, "the mean begins at zero; it begins"),
        (lambda w, d: from_zero(w, d) / (1 - d ** len(w)), "as in Adam"),
        (lambda w, d: w.mean(0), "all weights count alike"),
        (lambda w, d: w[-1] * 1, "these are the last weights"),
        (lambda w, d: w[0] * 1, "these are the first weights"),
        (lambda w, d: polyak_by_loop(w[:-1], d), "the last weights are left out"),
        (lambda w, d: polyak_by_loop(w[1:], d), "the first weights are left out"),
        (lambda w, d: d * w[-2] + (1 - d) * w[-1], "only the last two are mixed"),
        (lambda w, d: polyak_by_loop(w.flip(0), d), "backwards"),
        (lambda w, d: sum(d ** (len(w) - 1 - k) * w[k] for k in range(len(w))), "come in whole"),
        (lambda w, d: torch.stack([polyak_by_loop(w[: k + 1], d) for k in range(len(w))]), "after all steps"),
    ],
}
"""Each wrong answer, and a pattern of what is said about it."""
