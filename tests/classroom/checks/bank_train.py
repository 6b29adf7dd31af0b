"""The bank for chapters 7 to 9: right answers in different ways, and mistakes with the sentence each gets."""

import math
from itertools import pairwise

import numpy as np
import torch
import torch.nn.functional as F
from einops import rearrange
from right_answers import Bottleneck, padding_by_formula
from torch import nn

from vit_classroom import checks
from vit_classroom.checks.hybrid import CONFIG
from vit_from_scratch import training
from vit_from_scratch.model import ViTConfig, hybrid
from vit_from_scratch.model.stem_config import StemConfig
from vit_from_scratch.training.muon import orthogonalise

# Chapter 7: GroupNorm


def norm_by_einops(features, groups, eps):
    parts = rearrange(features, "b (g c) h w -> b g (c h w)", g=groups)
    centred = parts - parts.mean(-1, keepdim=True)
    return (centred / (centred.square().mean(-1, keepdim=True) + eps).sqrt()).view_as(features)


def norm_by_layer_norm(features, groups, eps):
    parts = features.reshape(len(features), groups, -1)
    return F.layer_norm(parts, parts.shape[-1:], eps=eps).reshape(features.shape)


def norm_in_loops(features, groups, eps):
    images = []
    for image in features:
        parts = []
        for part in image.chunk(groups):
            parts.append((part - part.mean()) / torch.sqrt(part.var(unbiased=False) + eps))
        images.append(torch.cat(parts))
    return torch.stack(images)


def norm_over(*axes):
    """Normalise (B, g, c, H, W) over these axes."""

    def function(features, groups, eps):
        blocks = features.unflatten(1, (groups, -1))
        variance, mean = torch.var_mean(blocks, axes, correction=0, keepdim=True)
        return ((blocks - mean) / (variance + eps).sqrt()).flatten(1, 2)

    return function


def norm_with(formula):
    def function(features, groups, eps):
        parts = features.flatten(2).unflatten(1, (groups, -1)).flatten(2)
        return formula(parts, parts.mean(-1, keepdim=True), eps).view(features.shape)

    return function


def norm_of_every_gth_channel(features, groups, eps):
    parts = rearrange(features, "b (c g) h w -> b g (c h w)", g=groups)
    normal = F.layer_norm(parts, parts.shape[-1:], eps=eps)
    return rearrange(normal, "b g (c h w) -> b (c g) h w", h=features.shape[2], w=features.shape[3])


def mean_square(parts, mean):
    return (parts - mean).square().mean(-1, keepdim=True)


NORM_WRONG = [
    (norm_over(2), "each place is normalised for itself"),
    (norm_over(1, 2), "as in LayerNorm"),
    (norm_over(3, 4), "each channel is normalised for itself"),
    (norm_over(1, 2, 3, 4), "run over the whole image"),
    (norm_over(0, 2, 3, 4), "run over the batch as well"),
    (norm_over(0, 3, 4), "this is BatchNorm"),
    (norm_of_every_gth_channel, r"\(g c\), not \(c g\)"),
    (lambda x, groups, eps: norm_by_einops(x, x.shape[1] // groups, eps), "how many groups there are"),
    (
        norm_with(lambda x, mean, eps: (x - mean) / (x.var(-1, keepdim=True) + eps).sqrt()),
        "divides by n - 1",
    ),
    (
        norm_with(lambda x, mean, eps: (x - mean) / (mean_square(x, mean).sqrt() + eps)),
        "eps is added to the deviation",
    ),
    (norm_with(lambda x, mean, eps: (x - mean) / mean_square(x, mean).sqrt()), "eps is left out"),
    (norm_with(lambda x, mean, eps: (x - mean) / (mean_square(x, mean) + eps)), "divide by its root"),
    (norm_with(lambda x, mean, eps: x / (mean_square(x, mean) + eps).sqrt()), "the mean is not taken away"),
    (norm_with(lambda x, mean, eps: x - mean), "nothing is divided by the deviation"),
    (
        lambda x, groups, eps: F.layer_norm(
            x.reshape(len(x), groups, -1), (x[0].numel() // groups,), eps=eps
        ),
        "still cut into groups",
    ),
    (
        norm_with(lambda x, mean, eps: (x - mean) / (mean_square(x, mean).detach() + eps).sqrt()),
        "gradient of input 1 is not",
    ),
]


# Chapter 7: standardised weights


def filters_by_formula(weight, eps):
    centred = weight - weight.mean(dim=(1, 2, 3), keepdim=True)
    return centred / (centred.square().mean(dim=(1, 2, 3), keepdim=True).sqrt() + eps)


def filters_flat(weight, eps):
    flat = weight.flatten(1)
    deviation, mean = torch.std_mean(flat, dim=1, correction=0, keepdim=True)
    return ((flat - mean) / (deviation + eps)).view_as(weight)


def filters_one_by_one(weight, eps):
    found = []
    for one in weight:
        variance = (one**2).mean() - one.mean() ** 2
        found.append((one - one.mean()) / (variance**0.5 + eps))
    return torch.stack(found)


def filters_with(formula):
    def function(weight, eps):
        centred = weight - weight.mean(dim=(1, 2, 3), keepdim=True)
        return formula(weight, centred, centred.square().mean(dim=(1, 2, 3), keepdim=True), eps)

    return function


FILTERS_WRONG = [
    (filters_with(lambda w, centred, variance, eps: w), "come back as they are"),
    (
        filters_with(lambda w, centred, variance, eps: w / (variance.sqrt() + eps)),
        "mean of the filters is not",
    ),
    (filters_with(lambda w, centred, variance, eps: centred), "not divided by their deviation"),
    (
        filters_with(lambda w, centred, variance, eps: centred / (variance + eps).sqrt()),
        "eps is added to the variance",
    ),
    (filters_with(lambda w, centred, variance, eps: centred / (variance + eps)), "divided by the variance"),
    (filters_with(lambda w, centred, variance, eps: centred / variance.sqrt()), "there is no eps"),
    (
        filters_with(lambda w, centred, variance, eps: centred / (w.std(dim=(1, 2, 3), keepdim=True) + eps)),
        "divides by n - 1",
    ),
    (
        lambda w, eps: (w - w.mean()) / (w.std(unbiased=False) + eps),
        "one mean and deviation for all filters",
    ),
    (
        lambda w, eps: (
            (w - w.mean((2, 3), keepdim=True)) / (w.std((2, 3), keepdim=True, unbiased=False) + eps)
        ),
        "over rows and columns alone",
    ),
    (lambda w, eps: (w - w.mean(0)) / (w.std(0, unbiased=False) + eps), "over the filters, axis 0"),
    (lambda w, eps: filters_by_formula(w, 1e-5), "eps is always 1e-5"),
    (lambda w, eps: filters_by_formula(w.detach(), eps), "no gradient can flow back"),
]


# Chapter 7: the stem


class Stem(hybrid.ResNetStem):
    def __init__(self, layers, width, dim):
        stem = StemConfig("resnet", layers=tuple(layers), width=width)
        super().__init__(ViTConfig(32, 4 * 2 ** (len(layers) - 1), dim=dim, heads=2, stem=stem))

    def pool(self, features):
        return F.max_pool2d(padding_by_formula(features, 3, 2), 3, 2)

    def start(self, images):
        return F.relu(self.root_norm(self.root(images)))

    def tokens(self, features):
        return self.projection(features.flatten(2).mT)

    def forward(self, images):
        features = self.pool(self.start(images))
        for stage in self.stages:
            features = stage(features)
        return self.tokens(features)


class StemUnitByUnit(Stem):
    def pool(self, features):
        return F.max_pool2d(F.pad(features, (0, 1, 0, 1), value=float("-inf")), 3, 2)

    def forward(self, images):
        features = self.pool(self.start(images))
        for unit in (unit for stage in self.stages for unit in stage):
            inner = unit.norm1(unit.conv1(features)).clamp(min=0)
            inner = unit.norm3(unit.conv3(unit.norm2(unit.conv2(inner)).clamp(min=0)))
            features = (inner + unit.shortcut_norm(unit.shortcut(features))).clamp(min=0)
        return self.projection(torch.einsum("bchw->bhwc", features).flatten(1, 2))


class StemThatProjectsByConvolution(Stem):
    def pool(self, features):
        padded = F.pad(features, (0, 1, 0, 1))
        windows = padded.unfold(2, 3, 2).unfold(3, 3, 2)
        return windows.flatten(4).amax(4)

    def tokens(self, features):
        weight, bias = self.projection.weight[:, :, None, None], self.projection.bias
        return rearrange(F.conv2d(features, weight, bias), "b d h w -> b (h w) d")


def stem_with(**methods):
    return type("OtherStem", (Stem,), methods)


class StemThatHalvesAtOnce(Stem):
    def __init__(self, layers, width, dim):
        super().__init__(layers, width, dim)
        for layer in (self.stages[0][0].conv2, self.stages[0][0].shortcut):
            layer.stride = (2, 2)


class StemThatNeverHalves(Stem):
    def __init__(self, layers, width, dim):
        super().__init__(layers, width, dim)
        for layer in (self.stages[1][0].conv2, self.stages[1][0].shortcut):
            layer.stride = (1, 1)


class StemInAList(Stem):
    def __init__(self, layers, width, dim):
        super().__init__(layers, width, dim)
        stages = list(self.stages)
        del self.stages
        self.stages = stages


def unit_that_begins_open(channels, width, stride):
    unit = Bottleneck(channels, width, stride)
    nn.init.ones_(unit.norm3.weight)
    return unit


STEM_WRONG = [
    (stem_with(pool=lambda self, x: x), "max pool after the root is missing"),
    (stem_with(pool=lambda self, x: F.max_pool2d(x, 3, 2, padding=1)), "padded on both sides alike"),
    (stem_with(pool=lambda self, x: F.max_pool2d(x, 3, 2)), "the max pool is not padded"),
    (stem_with(pool=lambda self, x: F.max_pool2d(x, 2)), "looks at 2 x 2 places"),
    (
        stem_with(pool=lambda self, x: F.avg_pool2d(padding_by_formula(x, 3, 2), 3, 2)),
        "a mean stands in place",
    ),
    (stem_with(start=lambda self, x: self.root_norm(self.root(x))), "ReLU after the root is missing"),
    (stem_with(start=lambda self, x: F.relu(self.root(x))), "norm after the root is missing"),
    (StemThatHalvesAtOnce, "first stage halves the map as well"),
    (StemThatNeverHalves, "a later stage does not halve"),
    (
        stem_with(tokens=lambda self, x: self.projection(x.permute(0, 3, 2, 1).flatten(1, 2))),
        "column by column",
    ),
    (stem_with(tokens=lambda self, x: x.flatten(2).mT), "projection to width D is missing"),
    (
        stem_with(tokens=lambda self, x: self.projection(x.reshape(len(x), -1, x.shape[1]))),
        "without moving its channels",
    ),
    (StemInAList, "layers in a Python list are not seen"),
]


# Chapter 7, exercises: windows


def window_by_steps(places, layers):
    first = last = places
    for kernel, stride, padding in layers[::-1]:
        first, last = first * stride - padding, last * stride - padding + kernel - 1
    return torch.stack([first, last], dim=1)


def window_one_by_one(places, layers):
    found = []
    for place in places.tolist():
        rows = range(place, place + 1)
        for kernel, stride, padding in reversed(layers):
            rows = range(rows[0] * stride - padding, rows[-1] * stride - padding + kernel)
        found.append([rows[0], rows[-1]])
    return torch.tensor(found)


def window_by_jump_and_side(places, layers):
    jump, side, start = 1, 1, 0
    for kernel, stride, padding in layers:
        start -= padding * jump
        side += (kernel - 1) * jump
        jump *= stride
    first = start + jump * places
    return torch.stack([first, first + side - 1], dim=-1)


def window_with(step):
    def function(places, layers):
        first = last = places
        for kernel, stride, padding in reversed(layers):
            first, last = step(first, last, kernel, stride, padding)
        return torch.stack([first, last], dim=1)

    return function


def sides(places, layers):
    both = window_by_steps(places, layers)
    return torch.stack([both[:, 0], both[:, 1] - both[:, 0] + 1], dim=1)


WINDOW_WRONG = [
    (lambda places, layers: window_by_steps(places, layers[::-1]), "followed from the photo on"),
    (window_with(lambda a, b, k, s, p: (a * s - p, b * s - p + k)), "one too far"),
    (window_with(lambda a, b, k, s, p: (a * s + p, b * s + p + k - 1)), "the padding is added"),
    (window_with(lambda a, b, k, s, p: (a * s, b * s + k - 1)), "padding is left out"),
    (window_with(lambda a, b, k, s, p: (a - p, b - p + k - 1)), "stride is left out"),
    (window_with(lambda a, b, k, s, p: ((a - p) * s, (b - p) * s + k - 1)), "multiplied by the stride"),
    (window_with(lambda a, b, k, s, p: (a * s - p, a * s - p + k - 1)), "grows from its first row alone"),
    (window_with(lambda a, b, k, s, p: (a * s - k // 2, b * s + k // 2)), "lies evenly around the place"),
    (sides, "the first row and the side"),
    (lambda places, layers: window_by_steps(places, layers).flip(1), "have changed places"),
    (lambda places, layers: window_by_steps(places, layers).T, r"the result is \(K, 2\)"),
    (lambda places, layers: window_by_steps(places, layers).clamp(min=0), "cut off at row 0"),
    (lambda places, layers: window_by_steps(places, layers).tolist(), "it returned a list of"),
]


# Chapter 7, exercises: the first cost


def cost_in_loops(costs, accuracies, wanted):
    found = []
    for height in wanted:
        for i in range(1, len(costs)):
            if accuracies[i] >= height:
                share = (height - accuracies[i - 1]) / (accuracies[i] - accuracies[i - 1])
                found.append(costs[i - 1] * (costs[i] / costs[i - 1]) ** share)
                break
    return torch.stack(found)


def cost_by_argmax(costs, accuracies, wanted):
    right = (accuracies >= wanted[:, None]).int().argmax(1)
    low, high = accuracies[right - 1], accuracies[right]
    share = (wanted - low) / (high - low)
    return torch.exp((1 - share) * costs[right - 1].log() + share * costs[right].log())


def cost_on_the_rising_edge(costs, accuracies, wanted):
    """The first time that a height is reached it is above all that came before."""
    best = accuracies.cummax(0).values
    right = torch.searchsorted(best, wanted)
    logs = costs.log10()
    slope = (logs[right] - logs[right - 1]) / (accuracies[right] - accuracies[right - 1])
    return 10 ** (logs[right - 1] + slope * (wanted - accuracies[right - 1]))


def cost_with(read, last=False):
    """The same search, and another reading of the piece of line."""

    def function(costs, accuracies, wanted):
        found = []
        for height in wanted.tolist():
            pairs = list(zip(accuracies.tolist(), costs.tolist(), strict=True))
            crossed = [(a, b) for a, b in pairwise(pairs) if min(a[0], b[0]) <= height <= max(a[0], b[0])]
            (low, left), (high, right) = crossed[-1 if last else 0]
            found.append(read(left, right, (height - low) / (high - low)))
        return torch.tensor(found)

    return function


def on_the_log_line(left, right, share):
    return left ** (1 - share) * right**share


def cost_by_interp(costs, accuracies, wanted):
    logs = np.interp(wanted.numpy(), accuracies.numpy(), costs.log().numpy())
    return torch.from_numpy(np.exp(logs)).float()


def cost_by_sorted_interp(costs, accuracies, wanted):
    order = accuracies.argsort()
    logs = np.interp(wanted.numpy(), accuracies[order].numpy(), costs[order].log().numpy())
    return torch.from_numpy(np.exp(logs)).float()


COST_WRONG = [
    (cost_with(lambda left, right, share: (1 - share) * left + share * right), "straight in the cost"),
    (cost_with(lambda left, right, share: right), "first run that is good enough"),
    (cost_with(lambda left, right, share: left), "the run before"),
    (lambda c, a, w: c[(a - w[:, None]).abs().argmin(1)], "accuracy is nearest"),
    (cost_with(lambda left, right, share: on_the_log_line(right, left, share)), "changed their shares"),
    (lambda c, a, w: cost_in_loops(c, a, w).log(), "take exp of it"),
    (lambda c, a, w: cost_in_loops(c, a, w).log10(), "take 10 to its power"),
    (cost_with(on_the_log_line, last=True), "take the first"),
    (cost_by_interp, "np.interp needs accuracies that rise"),
    (cost_by_sorted_interp, "in order of cost"),
]


# Chapter 7, exercises: the unit that norms first


class PreActivation(nn.Module):
    def __init__(self, channels, width, stride):
        super().__init__()
        self.norm1, self.conv1 = hybrid.norm(CONFIG, channels), hybrid.conv(CONFIG, channels, width, 1)
        self.norm2, self.conv2 = hybrid.norm(CONFIG, width), hybrid.conv(CONFIG, width, width, 3, stride)
        self.norm3, self.conv3 = hybrid.norm(CONFIG, width), hybrid.conv(CONFIG, width, 4 * width, 1)
        self.shortcut = nn.Identity()
        if stride != 1 or channels != 4 * width:
            self.shortcut = hybrid.conv(CONFIG, channels, 4 * width, 1, stride)

    def forward(self, features):
        start = F.relu(self.norm1(features))
        inner = self.conv2(F.relu(self.norm2(self.conv1(start))))
        inner = self.conv3(F.relu(self.norm3(inner)))
        return inner + (features if isinstance(self.shortcut, nn.Identity) else self.shortcut(start))


class PreActivationInALoop(PreActivation):
    def forward(self, features):
        inner, path = features, features
        for number in (1, 2, 3):
            inner = getattr(self, f"norm{number}")(inner).clamp(min=0)
            if number == 1 and list(self.shortcut.parameters()):
                path = self.shortcut(inner)
            inner = getattr(self, f"conv{number}")(inner)
        return path + inner


class PreActivationAsSequential(PreActivation):
    def forward(self, features):
        start = nn.Sequential(self.norm1, nn.ReLU())(features)
        layers = self.conv1, self.norm2, nn.ReLU(), self.conv2, self.norm3, nn.ReLU(), self.conv3
        changes = type(self.shortcut) is not nn.Identity
        return torch.stack(
            [nn.Sequential(*layers)(start), self.shortcut(start) if changes else features]
        ).sum(0)


def pre_activation(wire):
    def forward(self, features):
        normed = self.norm1(features)
        start = F.relu(normed)

        def branch(start, second=F.relu):
            return self.conv3(F.relu(self.norm3(self.conv2(second(self.norm2(self.conv1(start)))))))

        path = features if isinstance(self.shortcut, nn.Identity) else self.shortcut(start)
        return wire(self, features, normed, start, branch, path)

    return type("OtherUnit", (PreActivation,), {"forward": forward})


class PreActivationWithANormTooMany(PreActivation):
    def __init__(self, channels, width, stride):
        super().__init__(channels, width, stride)
        self.shortcut_norm = hybrid.norm(CONFIG, 4 * width)


PRE_ACTIVATION_WRONG = [
    (pre_activation(lambda self, x, n, z, branch, path: F.relu(path + branch(z))), "a ReLU follows the sum"),
    (pre_activation(lambda self, x, n, z, branch, path: branch(z)), "the input is not added"),
    (pre_activation(lambda self, x, n, z, branch, path: path + branch(n)), "first ReLU is missing"),
    (
        pre_activation(lambda self, x, n, z, branch, path: path + branch(z, lambda y: y)),
        "second ReLU is missing",
    ),
    (pre_activation(lambda self, x, n, z, branch, path: path + branch(x)), "first norm and ReLU are missing"),
    (
        pre_activation(lambda self, x, n, z, branch, path: path + branch(self.norm1(F.relu(x)))),
        "stands before its norm",
    ),
    (
        pre_activation(lambda self, x, n, z, branch, path: self.shortcut(x) + branch(z)),
        "reads the features as they came",
    ),
    (
        pre_activation(
            lambda self, x, n, z, branch, path: (path if path is x else self.shortcut(n)) + branch(z)
        ),
        "a ReLU comes between",
    ),
    (
        pre_activation(lambda self, x, n, z, branch, path: self.shortcut(z) + branch(z)),
        "without a convolution the path stays",
    ),
    (PreActivationWithANormTooMany, "unexpected shortcut_norm.weight"),
]


# Chapter 8: cross-entropy


def entropy_by_indexing(logits, labels):
    return -logits.log_softmax(1)[torch.arange(len(labels)), labels].mean()


def entropy_by_gather(logits, labels):
    largest = logits.max(1, keepdim=True).values
    shifted = logits - largest
    return (shifted.exp().sum(1).log() - shifted.gather(1, labels[:, None])[:, 0]).mean()


def entropy_in_loops(logits, labels):
    total = 0
    for row, label in zip(logits, labels, strict=True):
        total = total + row.logsumexp(0) - row[label]
    return total / len(labels)


def of_labels(values, labels):
    return values.gather(1, labels[:, None])[:, 0]


ENTROPY_WRONG = [
    (lambda x, y: -of_labels(x.log_softmax(1), y).sum(), "the losses are added"),
    (lambda x, y: -of_labels(x.log_softmax(1), y), "no mean over the batch"),
    (lambda x, y: -(x.log_softmax(1) * F.one_hot(y, x.shape[1])).mean(), "over all B x K values"),
    (lambda x, y: of_labels(x.log_softmax(1), y).mean(), "the sign is turned"),
    (lambda x, y: F.cross_entropy(x.softmax(1), y), "through a softmax twice"),
    (lambda x, y: -of_labels(x.softmax(1), y).mean(), "minus the mean probability is left"),
    (lambda x, y: -of_labels(x.softmax(1), y).mean().log(), "take the mean of logarithms"),
    (lambda x, y: -of_labels(x, y).mean(), "the softmax is missing"),
    (lambda x, y: -of_labels(x.log_softmax(0), y).mean(), "softmax runs over the batch"),
    (lambda x, y: -of_labels(x.log_softmax(1), y).mean() / math.log(2), "base 2"),
    (lambda x, y: -of_labels(x.log_softmax(1), y).mean() / math.log(10), "base 10"),
    (
        lambda x, y: -of_labels((x.exp() / x.exp().sum(1, keepdim=True)).log(), y).mean(),
        "end in no number",
    ),
    (lambda x, y: -of_labels(x.softmax(1).log(), y).mean(), "infinite loss"),
    (lambda x, y: -(x.softmax(1).log() * F.one_hot(y, x.shape[1])).sum(1).mean(), "end in no number"),
    (lambda x, y: (x.exp().sum(1).log() - of_labels(x, y)).mean(), "infinite loss"),
    (
        lambda x, y: F.binary_cross_entropy_with_logits(x, F.one_hot(y, x.shape[1]).float()),
        "a sigmoid of its own",
    ),
    (lambda x, y: -x.log_softmax(1).sum(1).mean(), "only the right class counts"),
    (lambda x, y: -(x.softmax(1) * x.log_softmax(1)).sum(1).mean(), "entropy of the model's answer"),
    (lambda x, y: -of_labels(x.log_softmax(1), y).mean().detach(), "no gradient can flow back"),
    (lambda x, y: (x.argmax(1) == y).float().mean(), "it returned .*: expected"),
]


# Chapter 8: label smoothing


def smoothed_by_target(logits, labels, smoothing):
    classes = logits.shape[1]
    target = (1 - smoothing) * F.one_hot(labels, classes) + smoothing / classes
    return -(target * logits.log_softmax(dim=1)).sum(dim=1).mean()


def smoothed_in_two_parts(logits, labels, smoothing):
    logs = logits.log_softmax(dim=1)
    return -(1 - smoothing) * of_labels(logs, labels).mean() - smoothing * logs.mean()


def smoothed_by_torch(logits, labels, smoothing):
    target = torch.full_like(logits, smoothing / logits.shape[1])
    target[torch.arange(len(labels)), labels] += 1 - smoothing
    return F.cross_entropy(logits, target)


def smoothed_with(target):
    def function(logits, labels, smoothing):
        hot = F.one_hot(labels, logits.shape[1])
        return -(target(hot, smoothing, logits.shape[1]) * logits.log_softmax(1)).sum(1).mean()

    return function


SMOOTHED_WRONG = [
    (smoothed_with(lambda hot, s, k: (1 - s) * hot + s / (k - 1) * (1 - hot)), "wrong classes alone"),
    (smoothed_with(lambda hot, s, k: hot), "labels are not smoothed"),
    (smoothed_with(lambda hot, s, k: (1 - s) * hot + s), "the whole smoothing"),
    (smoothed_with(lambda hot, s, k: hot + s / k), "keeps its full 1"),
    (smoothed_with(lambda hot, s, k: (1 - s) * hot), "the wrong classes get nothing"),
    (smoothed_with(lambda hot, s, k: s * hot + (1 - s) / k), "have changed places"),
    (smoothed_with(lambda hot, s, k: 0.9 * hot + 0.1 / k), "always 0.1"),
    (lambda x, y, s: len(x) * smoothed_by_target(x, y, s), "the losses are added"),
    (lambda x, y, s: smoothed_by_target(x, y, s) / x.shape[1], "over all B x K values"),
    (lambda x, y, s: -smoothed_by_target(x, y, s), "the sign is turned"),
    (
        lambda x, y, s: F.kl_div(
            x.log_softmax(1),
            (1 - s) * F.one_hot(y, x.shape[1]).float() + s / x.shape[1],
            reduction="batchmean",
        ),
        "which can reach 0",
    ),
    (lambda x, y, s: F.cross_entropy(x, y, label_smoothing=s).item(), "it returned float: expected a tensor"),
]


# Chapter 8: the schedule


def schedule_by_where(steps, total, warmup):
    progress = (steps - warmup) / (total - warmup)
    return torch.where(steps < warmup, (steps + 1) / max(warmup, 1), (1 + (math.pi * progress).cos()) / 2)


def schedule_in_a_loop(steps, total, warmup):
    factors = []
    for step in steps.tolist():
        if step < warmup:
            factors.append((step + 1) / warmup)
        else:
            factors.append(math.cos(math.pi / 2 * (step - warmup) / (total - warmup)) ** 2)
    return torch.tensor(factors)


def schedule_by_masks(steps, total, warmup):
    factors = torch.empty_like(steps)
    rising = steps < warmup
    factors[rising] = torch.linspace(0, 1, warmup + 1)[1:] if warmup else factors[rising]
    factors[~rising] = 0.5 + 0.5 * torch.cos((steps[~rising] - warmup) * torch.pi / (total - warmup))
    return factors


def schedule_with(rise=None, fall=None, until=lambda step, warmup: step < warmup):
    def function(steps, total, warmup):
        found = []
        for step in steps.tolist():
            progress = (step - warmup) / (total - warmup)
            if until(step, warmup):
                found.append(rise(step, total, warmup) if rise else (step + 1) / max(warmup, 1))
            elif fall:
                found.append(fall(progress, step, total, warmup))
            else:
                found.append(0.5 * (1 + math.cos(math.pi * progress)))
        return torch.tensor(found)

    return function


def half_wave(progress):
    return 0.5 * (1 + math.cos(math.pi * progress))


def schedule_by_the_packages(steps, total, warmup):
    return torch.tensor([training.schedule_factor(int(step), total, warmup) for step in steps])


SCHEDULE_WRONG = [
    (schedule_with(lambda step, total, warmup: step / warmup), "wastes a step"),
    (schedule_with(lambda step, total, warmup: step / (warmup - 1)), "reaches 1 in its last step"),
    (
        schedule_with(until=lambda step, warmup: step <= warmup),
        "one step too long",
    ),
    (
        schedule_with(
            lambda step, total, warmup: half_wave(step / total), lambda p, s, n, w: half_wave(s / n)
        ),
        "no warm-up",
    ),
    (schedule_with(lambda step, total, warmup: 1.0), "it climbs"),
    (schedule_with(fall=lambda p, s, n, w: half_wave(s / n)), "counts from step 0"),
    (schedule_with(fall=lambda p, s, n, w: half_wave((s - w) / n)), "stretched over `total` steps"),
    (
        schedule_with(
            lambda s, n, w: (s + 1) / w * half_wave(s / n),
            lambda p, s, n, w: half_wave(s / n),
        ),
        "one follows the other",
    ),
    (schedule_with(fall=lambda p, s, n, w: math.cos(math.pi * p)), "falls to -1"),
    (schedule_with(fall=lambda p, s, n, w: 1 + math.cos(math.pi * p)), "begins at 2"),
    (schedule_with(fall=lambda p, s, n, w: math.cos(math.pi * p / 2)), "a quarter of a wave"),
    (schedule_with(fall=lambda p, s, n, w: 1 - p), "the fall is linear"),
    (schedule_with(fall=lambda p, s, n, w: 1.0), "stays at 1"),
    (schedule_with(fall=lambda p, s, n, w: half_wave((s - w) / (n - w - 1))), "0 in the last step"),
    (schedule_with(fall=lambda p, s, n, w: 1 - half_wave(p)), "the cosine rises"),
    (schedule_with(fall=lambda p, s, n, w: 0.5 * (1 + math.cos(180 * p))), "take radians"),
    (lambda steps, total, warmup: schedule_in_a_loop(steps, total, warmup).tolist(), "it returned a list"),
    (
        lambda steps, total, warmup: torch.tensor(
            [min((s + 1) / warmup, half_wave((s - warmup) / (total - warmup))) for s in steps.tolist()]
        ),
        "ZeroDivisionError",
    ),
    (schedule_by_the_packages, "the package's own"),
]


# Chapter 8: AdamW


def adamw_by_formula(weight, gradients, rate, decay, beta1=0.9, beta2=0.999, eps=1e-8):
    m, s = torch.zeros_like(weight), torch.zeros_like(weight)
    for step, gradient in enumerate(gradients, start=1):
        m = beta1 * m + (1 - beta1) * gradient
        s = beta2 * s + (1 - beta2) * gradient**2
        m_hat, s_hat = m / (1 - beta1**step), s / (1 - beta2**step)
        weight = (1 - rate * decay) * weight - rate * m_hat / (s_hat.sqrt() + eps)
    return weight


@torch.no_grad()
def adamw_in_place(weight, gradients, rate, decay):
    weight, m, s = weight.clone(), torch.zeros_like(weight), torch.zeros_like(weight)
    share1 = share2 = 1.0
    for gradient in gradients:
        share1, share2 = 0.9 * share1, 0.999 * share2
        m.lerp_(gradient, 0.1)
        s.mul_(0.999).addcmul_(gradient, gradient, value=0.001)
        weight.mul_(1 - rate * decay)
        weight.addcdiv_(m, (s / (1 - share2)).sqrt().add_(1e-8), value=-rate / (1 - share1))
    return weight


def adamw_by_weighted_sums(weight, gradients, rate, decay):
    """The two means written out, with a weight for each gradient that came so far."""
    for last in range(1, len(gradients) + 1):
        age = torch.arange(last - 1, -1, -1.0, dtype=torch.float64)
        first, second = 0.9**age, 0.999**age
        seen = gradients[:last].double()
        m = (first[:, None] * seen).sum(0) / first.sum()
        s = (second[:, None] * seen**2).sum(0) / second.sum()
        weight = weight - rate * decay * weight - rate * (m / (s.sqrt() + 1e-8)).float()
    return weight


def by_optimiser(optimiser):
    def function(weight, gradients, rate, decay):
        moved = nn.Parameter(weight.clone())
        steps = optimiser([moved], lr=rate, weight_decay=decay)
        for gradient in gradients:
            moved.grad = gradient
            steps.step()
        return moved.detach()

    return function


def adamw_with(change_means=None, move=None, square=lambda g: g**2):
    """The loop of AdamW with another correction, or another step."""

    def corrected(m, s, step):
        return m / (1 - 0.9**step), s / (1 - 0.999**step)

    def usual(weight, m_hat, s_hat, rate, decay):
        return (1 - rate * decay) * weight - rate * m_hat / (s_hat.sqrt() + 1e-8)

    def function(weight, gradients, rate, decay):
        m, s = torch.zeros_like(weight), torch.zeros_like(weight)
        for step, gradient in enumerate(gradients, start=1):
            m = 0.9 * m + 0.1 * gradient
            s = 0.999 * s + 0.001 * square(gradient)
            m_hat, s_hat = (change_means or corrected)(m, s, step)
            weight = (move or usual)(weight, m_hat, s_hat, rate, decay)
        return weight

    return function


def adamw_that_carries(weight, gradients, rate, decay):
    m, s = torch.zeros_like(weight), torch.zeros_like(weight)
    for step, gradient in enumerate(gradients, start=1):
        m = (0.9 * m + 0.1 * gradient) / (1 - 0.9**step)
        s = (0.999 * s + 0.001 * gradient**2) / (1 - 0.999**step)
        weight = weight - rate * decay * weight - rate * m / (s.sqrt() + 1e-8)
    return weight


def adamw_that_forgets(weight, gradients, rate, decay):
    for gradient in gradients:
        weight = adamw_by_formula(weight, gradient[None], rate, decay)
    return weight


def adamw_with_whole_gradients(weight, gradients, rate, decay):
    m, s = torch.zeros_like(weight), torch.zeros_like(weight)
    for step, gradient in enumerate(gradients, start=1):
        m = 0.9 * m + gradient
        s = 0.999 * s + 0.001 * gradient**2
        weight = weight * (1 - rate * decay)
        weight = weight - rate * m / (1 - 0.9**step) / ((s / (1 - 0.999**step)).sqrt() + 1e-8)
    return weight


def counts_from_zero(weight, gradients, rate, decay):
    m, s = torch.zeros_like(weight), torch.zeros_like(weight)
    for step, gradient in enumerate(gradients):
        m = 0.9 * m + 0.1 * gradient
        s = 0.999 * s + 0.001 * gradient**2
        m_hat, s_hat = m / (1 - 0.9**step), s / (1 - 0.999**step)
        weight = (1 - rate * decay) * weight - rate * m_hat / (s_hat.sqrt() + 1e-8)
    return weight


def adamw_on_the_callers_weight(weight, gradients, rate, decay):
    return weight.copy_(adamw_by_formula(weight, gradients, rate, decay))


def late_decay(weight, m, s, rate, decay):
    return (1 - rate * decay) * (weight - rate * m / (s.sqrt() + 1e-8))


ADAMW_WRONG = [
    (by_optimiser(torch.optim.Adam), "Adam with L2"),
    (by_optimiser(torch.optim.SGD), "as SGD does"),
    (
        adamw_with(move=lambda w, m, s, rate, decay: (1 - decay) * w - rate * m / (s.sqrt() + 1e-8)),
        "not multiplied by the rate",
    ),
    (adamw_with(move=lambda w, m, s, rate, decay: w - rate * m / (s.sqrt() + 1e-8)), "there is no decay"),
    (
        adamw_with(move=lambda w, m, s, rate, decay: (1 + rate * decay) * w - rate * m / (s.sqrt() + 1e-8)),
        "grows with the decay",
    ),
    (adamw_with(move=late_decay), "the decay comes after the step"),
    (adamw_with(lambda m, s, step: (m, s)), "the means are not corrected"),
    (adamw_with(lambda m, s, step: (m, s / (1 - 0.999**step))), "m is not corrected"),
    (adamw_with(lambda m, s, step: (m / (1 - 0.9**step), s)), "s is not corrected"),
    (adamw_with(lambda m, s, step: (m / 0.1, s / 0.001)), "always that of step 1"),
    (adamw_that_carries, "go on into the next step"),
    (lambda w, g, rate, decay: adamw_by_formula(w, g, rate, decay, 0.999, 0.9), "betas have changed places"),
    (
        adamw_with(move=lambda w, m, s, rate, decay: (1 - rate * decay) * w - rate * m / (s + 1e-8).sqrt()),
        "eps stands under the root",
    ),
    (lambda w, g, rate, decay: adamw_by_formula(w, g, rate, decay, eps=0.0), "eps is left out"),
    (
        adamw_with(move=lambda w, m, s, rate, decay: (1 - rate * decay) * w - rate * m / (s + 1e-8)),
        "the root is missing",
    ),
    (adamw_with_whole_gradients, "added to m whole"),
    (lambda w, g, rate, decay: adamw_by_formula(w, g, rate, decay, beta1=0.0), "m is left out"),
    (adamw_that_forgets, "begin anew at each step"),
    (lambda w, g, rate, decay: adamw_by_formula(w, g[:1], rate, decay), "only the first gradient"),
    (lambda w, g, rate, decay: adamw_by_formula(w, g[-1:], rate, decay), "only the last gradient"),
    (lambda w, g, rate, decay: adamw_by_formula(w, -g, rate, decay), "climbs along the gradient"),
    (lambda w, g, rate, decay: adamw_by_formula(w, g, rate, decay) - w, "sum of the steps"),
    (lambda w, g, rate, decay: w - rate * g.sum(0), "as in SGD"),
    (counts_from_zero, "counted from 0"),
    (adamw_on_the_callers_weight, "changes its input"),
]


# Chapter 8, exercises: clipping


def clipped_by_minimum(gradient, limit):
    return gradient * min(1.0, limit / max(gradient.norm().item(), 1e-12))


def clipped_by_case(gradient, limit):
    length = (gradient**2).sum().sqrt()
    if length > limit:
        return gradient / length * limit
    return gradient


def clipped_by_torch(gradient, limit):
    held = nn.Parameter(torch.zeros_like(gradient))
    held.grad = gradient.clone()
    nn.utils.clip_grad_norm_([held], limit)
    return held.grad


def clipped_by_renorm(gradient, limit):
    return torch.renorm(gradient[None], p=2, dim=0, maxnorm=limit)[0]


def clipped_with(length):
    return lambda gradient, limit: gradient * (limit / length(gradient)).clamp(max=1.0)


def only_long(change):
    return lambda gradient, limit: change(gradient, limit) if gradient.norm() > limit else gradient


CLIPPED_WRONG = [
    (lambda g, limit: g.clamp(-limit, limit), "each value is cut off for itself"),
    (lambda g, limit: g * limit / g.norm(), "shorter than the limit is made longer"),
    (lambda g, limit: g / g.norm(), "the result has length 1;"),
    (only_long(lambda g, limit: g / g.norm()), "the result has length 1;"),
    (only_long(lambda g, limit: g * limit), "multiplied by the limit"),
    (only_long(lambda g, limit: g / limit), "divided by the limit"),
    (clipped_with(lambda g: g.abs().sum()), "sum of absolute values"),
    (clipped_with(lambda g: g.abs().max()), "the largest value"),
    (clipped_with(lambda g: (g**2).sum()), "lacks its root"),
    (clipped_with(lambda g: (g**2).mean().sqrt()), "root of the mean square"),
    (only_long(lambda g, limit: torch.zeros_like(g)), "becomes zero"),
    (lambda g, limit: g, "nothing is shortened"),
]


# Chapter 8, exercises: nearest neighbours


def votes_by_cdist(train_images, train_labels, images, k, classes):
    distances = torch.cdist(images.flatten(1), train_images.flatten(1))
    nearest = distances.topk(k, largest=False).indices
    return F.one_hot(train_labels[nearest], classes).float().mean(dim=1)


def votes_in_loops(train_images, train_labels, images, k, classes):
    rows = []
    for image in images:
        distances = ((train_images - image) ** 2).sum(dim=(1, 2, 3))
        labels = train_labels[distances.argsort()[:k]]
        rows.append(torch.bincount(labels, minlength=classes) / k)
    return torch.stack(rows)


def votes_by_products(train_images, train_labels, images, k, classes):
    x, y = images.flatten(1), train_images.flatten(1)
    closeness = 2 * x @ y.T - (y * y).sum(1)
    near = torch.zeros_like(closeness).scatter_(1, closeness.topk(k).indices, 1 / k)
    return near @ torch.eye(classes)[train_labels]


def votes_with(distance, choose=lambda order, k: order[:, :k], count=None):
    def function(train_images, train_labels, images, k, classes):
        order = distance(images.flatten(1), train_images.flatten(1)).argsort(dim=1)
        shares = F.one_hot(train_labels[choose(order, k)], classes).float()
        return count(shares, k, classes) if count else shares.mean(1)

    return function


def cosine(x, y):
    return F.normalize(x, dim=1) @ F.normalize(y, dim=1).T


VOTES_WRONG = [
    (votes_with(lambda x, y: -torch.cdist(x, y)), "the k farthest images"),
    (votes_with(torch.cdist, count=lambda shares, k, classes: shares.sum(1)), "divide by k"),
    (votes_with(torch.cdist, count=lambda shares, k, classes: shares.sum(1) / classes), "number of classes"),
    (
        votes_with(
            torch.cdist,
            count=lambda shares, k, classes: F.one_hot(shares.sum(1).argmax(1), classes).float(),
        ),
        "all votes go to the winner",
    ),
    (votes_with(torch.cdist, lambda order, k: order[:, :1]), "only the nearest image votes"),
    (votes_with(torch.cdist, lambda order, k: order[:, : k - 1] if k > 1 else order[:, :1]), "too few"),
    (votes_with(torch.cdist, lambda order, k: order[:, : k + 1]), "one image too many"),
    (votes_with(torch.cdist, lambda order, k: order[:, 1 : k + 1]), "the nearest image is left out"),
    (votes_with(lambda x, y: torch.cdist(x, y, p=1)), "sum of absolute differences"),
    (votes_with(lambda x, y: torch.cdist(x, y, p=float("inf"))), "largest difference of a pixel"),
    (votes_with(lambda x, y: -x @ y.T), "largest dot product"),
    (votes_with(lambda x, y: x @ y.T), "smallest dot product"),
    (votes_with(lambda x, y: -cosine(x, y)), "smallest angle"),
    (votes_with(lambda x, y: (x[:, None] - y).sum(-1)), "with their signs"),
    (votes_with(torch.cdist, lambda order, k: order), "all training images vote"),
    (
        lambda train_images, train_labels, images, k, classes: votes_by_cdist(
            train_images, train_labels, images, k, classes
        ).argmax(1),
        "it returned shape",
    ),
]


# Chapter 9: mixup


def mixup_by_view(values, partners, share):
    kept = share.view(-1, *[1] * (values.dim() - 1))
    return kept * values + (1 - kept) * values[partners]


def mixup_flat(values, partners, share):
    flat = values.flatten(1)
    return (flat[partners] + share[:, None] * (flat - flat[partners])).view_as(values)


def mixup_one_by_one(values, partners, share):
    return torch.stack([s * v + (1 - s) * values[p] for v, p, s in zip(values, partners, share, strict=True)])


def mixup_by_matrix(values, partners, share):
    weights = torch.diag(share) + (1 - share)[:, None] * F.one_hot(partners, len(values))
    return torch.einsum("ij,j...->i...", weights, values)


def mixup_with(formula):
    def function(values, partners, share):
        return formula(values, values[partners], share.view(-1, *[1] * (values.dim() - 1)), partners)

    return function


MIXUP_WRONG = [
    (mixup_with(lambda x, y, s, p: (1 - s) * x + s * y), "the shares have changed places"),
    (mixup_with(lambda x, y, s, p: s[0] * x + (1 - s[0]) * y), "share of the first pair"),
    (mixup_with(lambda x, y, s, p: s.mean() * x + (1 - s.mean()) * y), "mean of all shares"),
    (mixup_with(lambda x, y, s, p: s * x + (1 - s) * x.flip(0)), "turned round"),
    (mixup_with(lambda x, y, s, p: s * x + (1 - s) * x.roll(1, 0)), "neighbours in the batch"),
    (mixup_with(lambda x, y, s, p: s * x + (1 - s) * x[p.argsort()]), "the wrong way round"),
    (mixup_with(lambda x, y, s, p: s * x + y), "the partner comes in whole"),
    (mixup_with(lambda x, y, s, p: x + (1 - s) * y), "the value stays whole"),
    (mixup_with(lambda x, y, s, p: s * x + s[p] * y), "with its own share"),
    (mixup_with(lambda x, y, s, p: s * (x + y)), "multiplied by the same share"),
    (lambda values, partners, share: share * values + (1 - share) * values[partners], "RuntimeError"),
    (mixup_with(lambda x, y, s, p: x), "come back as they are"),
    (mixup_with(lambda x, y, s, p: y), "these are the partners"),
    (mixup_with(lambda x, y, s, p: x.mul_(s) + (1 - s) * x[p]), "changes its input"),
]


# Chapter 9: locality


def local_by_rearrange(hidden, kernel, bias, rows):
    image = rearrange(hidden, "b (gh gw) m -> b m gh gw", gh=rows)
    local = F.conv2d(image, kernel, bias, padding=1, groups=len(kernel))
    return rearrange(local, "b m gh gw -> b (gh gw) m")


def local_by_shifts(hidden, kernel, bias, rows):
    grid = F.pad(hidden.unflatten(1, (rows, -1)), (0, 0, 1, 1, 1, 1))  # (B, rows + 2, columns + 2, M)
    height, width = grid.shape[1] - 2, grid.shape[2] - 2
    total = bias
    for down in range(3):
        for right in range(3):
            seen = grid[:, down : down + height, right : right + width]
            total = total + seen * kernel[:, 0, down, right]
    return total.flatten(1, 2)


def local_by_unfold(hidden, kernel, bias, rows):
    batch, count, width = hidden.shape
    image = hidden.mT.reshape(batch, width, rows, count // rows)
    windows = F.unfold(image, 3, padding=1).unflatten(1, (width, 9))  # (B, M, 9, N)
    return torch.einsum("bmkn,mk->bnm", windows, kernel.flatten(1)) + bias


def local_with(cut="b (gh gw) m -> b m gh gw", back="b m gh gw -> b (gh gw) m", convolve=None):
    def function(hidden, kernel, bias, rows):
        image = rearrange(hidden, cut, gh=rows)
        convolved = (convolve or F.conv2d)(image, kernel, bias, padding=1, groups=len(kernel))
        return rearrange(convolved, back)

    return function


def local_by_view(hidden, kernel, bias, rows):
    batch, _, width = hidden.shape
    local = F.conv2d(hidden.view(batch, width, rows, -1), kernel, bias, padding=1, groups=width)
    return local.flatten(2).mT


def local_by_view_and_back(hidden, kernel, bias, rows):
    image = hidden.view(len(hidden), hidden.shape[2], rows, -1)
    return F.conv2d(image, kernel, bias, padding=1, groups=len(kernel)).view_as(hidden)


def local_without_moving_back(hidden, kernel, bias, rows):
    image = hidden.mT.unflatten(2, (rows, -1))
    return F.conv2d(image, kernel, bias, padding=1, groups=len(kernel)).reshape(hidden.shape)


def padded_like(mode):
    def convolve(image, kernel, bias, padding, groups):
        return F.conv2d(F.pad(image, (1, 1, 1, 1), mode=mode), kernel, bias, groups=groups)

    return local_with(convolve=convolve)


LOCAL_WRONG = [
    (
        lambda hidden, kernel, bias, rows: local_by_rearrange(hidden, kernel, bias, hidden.shape[1] // rows),
        "rows and columns of the grid",
    ),
    (local_with("b (gw gh) m -> b m gh gw", "b m gh gw -> b (gw gh) m"), "column by column"),
    (local_by_view, "reshaped to the grid without moving"),
    (local_by_view_and_back, "to the grid and back without moving"),
    (local_without_moving_back, "reshaped to tokens without moving"),
    (local_with(back="b m gh gw -> b m gh gw"), "the result is still a grid"),
    (lambda hidden, kernel, bias, rows: local_by_rearrange(hidden, kernel, None, rows), "bias is missing"),
    (lambda hidden, *rest: hidden + local_by_rearrange(hidden, *rest), "what it read is added"),
    (lambda *given: F.gelu(local_by_rearrange(*given)), "a GELU follows"),
    (lambda hidden, kernel, *rest: local_by_rearrange(hidden, kernel.flip(2, 3), *rest), "turned round"),
    (lambda hidden, kernel, *rest: local_by_rearrange(hidden, kernel.mT, *rest), "kernel is transposed"),
    (padded_like("replicate"), "border is repeated"),
    (padded_like("circular"), "joins the other side"),
    (
        local_with(
            convolve=lambda image, kernel, bias, padding, groups: F.conv2d(image, kernel, bias, groups=groups)
        ),
        "there is no padding",
    ),
    (
        local_with(
            convolve=lambda image, kernel, bias, padding, groups: F.conv2d(image, kernel, bias, padding=1)
        ),
        "RuntimeError",
    ),
    (
        lambda hidden, kernel, *rest: local_by_rearrange(hidden, kernel[:1].expand_as(kernel), *rest),
        "share the first kernel",
    ),
]


# Chapter 9: Muon


def orthogonal_by_loop(gradient, rounds=5):
    x = gradient / gradient.norm()
    for _ in range(rounds):
        gram = x @ x.T
        x = 3.4445 * x + (-4.7750 * gram + 2.0315 * gram @ gram) @ x
    return x


def orthogonal_from_the_right(gradient, rounds=5):
    x = gradient / (gradient**2).sum().sqrt()
    for _ in range(rounds):
        gram = x.T @ x
        x = x @ (3.4445 * torch.eye(len(gram)) - 4.7750 * gram + 2.0315 * gram.matrix_power(2))
    return x


@torch.no_grad()
def orthogonal_by_singular_values(gradient, rounds=5):
    u, s, v = torch.linalg.svd(gradient, full_matrices=False)
    s = s / s.norm()
    for _ in range(rounds):
        s = 3.4445 * s - 4.7750 * s**3 + 2.0315 * s**5
    return u * s @ v


def orthogonal_with(
    step=None, count=lambda rounds: rounds, start=lambda gradient: gradient / gradient.norm()
):
    def usual(x, gram):
        return 3.4445 * x + (-4.7750 * gram + 2.0315 * gram @ gram) @ x

    def function(gradient, rounds):
        x = start(gradient)
        for _ in range(count(rounds)):
            x = (step or usual)(x, x @ x.T)
        return x

    return function


def orthogonal_with_one_gram(gradient, rounds=5):
    x = gradient / gradient.norm()
    gram = x @ x.T
    for _ in range(rounds):
        x = 3.4445 * x + (-4.7750 * gram + 2.0315 * gram @ gram) @ x
    return x


def exactly_orthogonal(gradient, rounds=5):
    u, _, v = torch.linalg.svd(gradient, full_matrices=False)
    return u @ v


ORTHOGONAL_WRONG = [
    (orthogonal_with(start=lambda g: g), "not divided by its norm"),
    (orthogonal_with(start=lambda g: g / torch.linalg.matrix_norm(g, 2)), "largest singular value"),
    (
        orthogonal_with(start=lambda g: F.normalize(g, dim=1)),
        "each row is divided",
    ),
    (
        orthogonal_with(start=lambda g: F.normalize(g, dim=0)),
        "each column is divided",
    ),
    (orthogonal_with(start=lambda g: g / g.abs().max()), "divided by its largest value"),
    (orthogonal_with(count=lambda rounds: 1), "always one round"),
    (orthogonal_with(count=lambda rounds: rounds - 1), "one round too few"),
    (orthogonal_with(count=lambda rounds: rounds + 1), "one round too many"),
    (orthogonal_with(count=lambda rounds: 5), "always five rounds"),
    (orthogonal_with_one_gram, "G is computed once"),
    (orthogonal_with(lambda x, gram: 3.4445 * x - 4.7750 * x**3 + 2.0315 * x**5), "value by value; G = X"),
    (
        orthogonal_with(lambda x, gram: 3.4445 * x + (-4.7750 * gram + 2.0315 * gram**2) @ x),
        "G is squared value",
    ),
    (orthogonal_with(lambda x, gram: 3.4445 * x + (-4.7750 * gram + 2.0315 * gram) @ x), r"c multiplies G;"),
    (orthogonal_with(lambda x, gram: 3.4445 * x - 4.7750 * gram @ x), "the last term is missing"),
    (
        orthogonal_with(lambda x, gram: 3.4445 * x + (2.0315 * gram - 4.7750 * gram @ gram) @ x),
        "changed places",
    ),
    (orthogonal_with(lambda x, gram: (-4.7750 * gram + 2.0315 * gram @ gram) @ x), "a X is missing"),
    (orthogonal_with(lambda x, gram: 1.5 * x - 0.5 * gram @ x), "Newton and Schulz"),
    (
        orthogonal_with(lambda x, gram: 3.4445 * x + (4.7750 * gram + 2.0315 * gram @ gram) @ x),
        "minus sign of b",
    ),
    (exactly_orthogonal, "the exact U V"),
    (orthogonal_with(count=lambda rounds: 0), "only divided by its norm"),
    (lambda g, rounds: g.norm() * orthogonal_by_loop(g, rounds), "multiplied by the norm again"),
    (lambda g, rounds: orthogonal_by_loop(g.bfloat16(), rounds), "the values are not"),
    (lambda g, rounds: orthogonalise(g[None], rounds)[0], "the package's own"),
]


# Chapter 9, exercises: a step of Muon


def muon_by_chunks(weight, gradient, rate, parts):
    rows, columns = len(weight) // parts, weight.shape[1]
    steps = [orthogonal_by_loop(part) for part in gradient.chunk(parts)]
    return weight - rate * max(1, rows / columns) ** 0.5 * torch.cat(steps)


@torch.no_grad()
def muon_part_by_part(weight, gradient, rate, parts):
    moved = weight.clone()
    height = len(weight) // parts
    for top in range(0, len(weight), height):
        part = slice(top, top + height)
        stretch = math.sqrt(height / weight.shape[1]) if height > weight.shape[1] else 1.0
        moved[part] -= rate * stretch * orthogonal_from_the_right(gradient[part])
    return moved


def muon_by_map(weight, gradient, rate, parts):
    stacked = gradient.view(parts, -1, gradient.shape[1])
    steps = torch.stack([orthogonal_by_singular_values(part) for part in stacked])
    stretch = max(1.0, stacked.shape[1] / stacked.shape[2]) ** 0.5
    return torch.add(weight, steps.view_as(weight), alpha=-rate * stretch)


def muon_with(factor=lambda rows, columns, parts: max(1, rows / columns) ** 0.5, make=None):
    def apart(gradient, parts):
        return torch.cat([orthogonal_by_loop(part) for part in gradient.chunk(parts)])

    def function(weight, gradient, rate, parts):
        rows, columns = len(weight) // parts, weight.shape[1]
        return weight - rate * factor(rows, columns, parts) * (make or apart)(gradient, parts)

    return function


def as_one(gradient, parts):
    return orthogonal_by_loop(gradient)


def every_third(gradient, parts):
    made = torch.empty_like(gradient)
    for first in range(parts):
        made[first::parts] = orthogonal_by_loop(gradient[first::parts])
    return made


MUON_WRONG = [
    (muon_with(lambda r, c, n: max(1, n * r / c) ** 0.5, as_one), "orthogonal as one; take"),
    (muon_with(lambda r, c, n: 1, as_one), "as one, without the factor"),
    (muon_with(make=as_one), "as one, with a part's factor"),
    (muon_with(lambda r, c, n: 1), "more rows than columns is missing"),
    (muon_with(lambda r, c, n: max(1, n * r / c) ** 0.5), "factor is that of the whole matrix"),
    (muon_with(lambda r, c, n: max(1, r / c)), "the factor lacks its root"),
    (muon_with(lambda r, c, n: max(1, c / r) ** 0.5), "the factor is turned round"),
    (muon_with(lambda r, c, n: (r / c) ** 0.5), "it is at least 1"),
    (lambda w, g, rate, parts: 2 * w - muon_by_chunks(w, g, rate, parts), "the weight climbs"),
    (muon_with(make=lambda g, parts: g), "the gradient is used as it is"),
    (muon_with(make=every_third), "a part takes every so many rows"),
    (
        muon_with(make=lambda g, parts: torch.cat([exactly_orthogonal(part) for part in g.chunk(parts)])),
        "orthogonal exactly",
    ),
    (lambda w, g, rate, parts: w - muon_by_chunks(w, g, rate, parts), "that is the step"),
    (lambda w, g, rate, parts: muon_by_chunks(w, g, rate, parts) - w, "that is the change"),
    (lambda w, g, rate, parts: muon_by_chunks(w, g, 1.0, parts), "the rate is missing"),
    (lambda w, g, rate, parts: w.copy_(muon_by_chunks(w, g, rate, parts)), "changes its input"),
]


# Chapter 9, exercises: cutout


def erase_by_mask(images, centres, share):
    side = images.shape[-1]
    middles = torch.arange(side) + 0.5
    near = [(middles - centre[:, None]).abs() <= share * side / 2 for centre in centres.unbind(1)]
    square = near[0][:, None, :, None] & near[1][:, None, None, :]
    return images.masked_fill(square, 127.5)


def erase_by_slices(images, centres, share):
    erased, side = images.clone(), images.shape[-1]
    half = share * side / 2
    for image, centre in zip(erased, centres.tolist(), strict=True):
        (top, bottom), (left, right) = (
            (max(0, math.ceil(place - half - 0.5)), max(0, math.floor(place + half - 0.5) + 1))
            for place in centre
        )
        image[:, top:bottom, left:right] = 127.5
    return erased


def erase_by_where(images, centres, share):
    rows, columns = torch.meshgrid(*[torch.arange(0.5, images.shape[-1])] * 2, indexing="ij")
    found = []
    for image, (row, column) in zip(images, centres, strict=True):
        farthest = torch.maximum((rows - row).abs(), (columns - column).abs())
        found.append(torch.where(farthest <= share * images.shape[-1] / 2, torch.tensor(127.5), image))
    return torch.stack(found)


def erase_with(shape=lambda down, right, half: (down <= half) & (right <= half), value=127.5, middle=0.5):
    """Down and right are distances from the centre, in pixels."""

    def function(images, centres, share):
        side = images.shape[-1]
        places = torch.arange(side) + middle
        down = (places - centres[:, 0, None]).abs()[:, None, :, None]
        right = (places - centres[:, 1, None]).abs()[:, None, None, :]
        return images.masked_fill(shape(down, right, share * side / 2), value)

    return function


def erases_from_the_centre(images, centres, share):
    side = images.shape[-1]
    return erase_by_mask(images, centres + share * side / 2, share)


def erases_with_negative_indices(images, centres, share):
    erased, half = images.clone(), share * images.shape[-1] / 2
    for image, (row, column) in zip(erased, centres.tolist(), strict=True):
        top, left = math.ceil(row - half - 0.5), math.ceil(column - half - 0.5)
        bottom, right = math.floor(row + half - 0.5) + 1, math.floor(column + half - 0.5) + 1
        image[:, top:bottom, left:right] = 127.5
    return erased


def erases_in_place(images, centres, share):
    images.copy_(erase_by_mask(images, centres, share))
    return images


def erases_one_channel(images, centres, share):
    return torch.cat([erase_by_mask(images[:, :1], centres, share), images[:, 1:]], dim=1)


ERASE_WRONG = [
    (lambda x, centres, share: erase_by_mask(x, centres[:1].expand_as(centres), share), "the same square"),
    (lambda x, centres, share: erase_by_mask(x, centres.flip(1), share), r"a centre is \(row, column\)"),
    (lambda x, centres, share: erase_by_mask(x, centres, 2 * share), "twice too wide"),
    (lambda x, centres, share: erase_by_mask(x, centres, share / 2), "half as wide"),
    (erase_with(lambda down, right, half: (down <= half) | (right <= half)), "a cross is erased"),
    (erase_with(lambda down, right, half: (down <= half).expand_as(down + right)), "only rows"),
    (erase_with(lambda down, right, half: (right <= half).expand_as(down + right)), "only columns"),
    (erase_with(value=0.0), "become 0; they"),
    (erase_with(value=128.0), "become 128"),
    (erase_with(value=0.5), "become 0.5"),
    (erase_with(lambda down, right, half: (down > half) | (right > half)), "all around it erased"),
    (erases_one_channel, "only the first channel"),
    (erase_with(middle=0.0), "its middle lies at i"),
    (erases_from_the_centre, "begins at the centre"),
    (erases_with_negative_indices, "a negative index counts from the end"),
    (erase_with(lambda down, right, half: down**2 + right**2 <= half**2), "a circle is erased"),
    (lambda x, centres, share: x, "nothing is erased"),
    (erases_in_place, "changes its input"),
]


RIGHT = {
    checks.group_norm: (norm_by_einops, norm_by_layer_norm, norm_in_loops),
    checks.standardised: (filters_by_formula, filters_flat, filters_one_by_one),
    checks.resnet_stem: (Stem, StemUnitByUnit, StemThatProjectsByConvolution),
    checks.window: (window_by_steps, window_one_by_one, window_by_jump_and_side),
    checks.first_cost: (cost_in_loops, cost_by_argmax, cost_on_the_rising_edge),
    checks.pre_activation: (PreActivation, PreActivationInALoop, PreActivationAsSequential),
    checks.cross_entropy: (entropy_by_indexing, entropy_by_gather, entropy_in_loops, F.cross_entropy),
    checks.smoothed_cross_entropy: (smoothed_by_target, smoothed_in_two_parts, smoothed_by_torch),
    checks.schedule: (schedule_by_where, schedule_in_a_loop, schedule_by_masks),
    checks.adamw: (adamw_by_formula, adamw_in_place, adamw_by_weighted_sums, by_optimiser(torch.optim.AdamW)),
    checks.clipped: (clipped_by_minimum, clipped_by_case, clipped_by_torch, clipped_by_renorm),
    checks.votes: (votes_by_cdist, votes_in_loops, votes_by_products),
    checks.mixup: (mixup_by_view, mixup_flat, mixup_one_by_one, mixup_by_matrix),
    checks.neighbours: (local_by_rearrange, local_by_shifts, local_by_unfold),
    checks.orthogonalised: (orthogonal_by_loop, orthogonal_from_the_right, orthogonal_by_singular_values),
    checks.muon_step: (muon_by_chunks, muon_part_by_part, muon_by_map),
    checks.erase: (erase_by_mask, erase_by_slices, erase_by_where),
}
"""By check."""

_BY_CHECK = {
    checks.group_norm: NORM_WRONG,
    checks.standardised: FILTERS_WRONG,
    checks.resnet_stem: STEM_WRONG,
    checks.bottleneck: [(unit_that_begins_open, "norm3.weight begins at other values than 0")],
    checks.window: WINDOW_WRONG,
    checks.first_cost: COST_WRONG,
    checks.pre_activation: PRE_ACTIVATION_WRONG,
    checks.cross_entropy: ENTROPY_WRONG,
    checks.smoothed_cross_entropy: SMOOTHED_WRONG,
    checks.schedule: SCHEDULE_WRONG,
    checks.adamw: ADAMW_WRONG,
    checks.clipped: CLIPPED_WRONG,
    checks.votes: VOTES_WRONG,
    checks.mixup: MIXUP_WRONG,
    checks.neighbours: LOCAL_WRONG,
    checks.orthogonalised: ORTHOGONAL_WRONG,
    checks.muon_step: MUON_WRONG,
    checks.erase: ERASE_WRONG,
}
WRONG = [(check, piece, message) for check, pieces in _BY_CHECK.items() for piece, message in pieces]
"""All of them: a check, the wrong answer, and a pattern of what is said about it."""
