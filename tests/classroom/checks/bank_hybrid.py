"""Right and wrong answers to the pieces of chapter 7."""

import math
from functools import partial
from itertools import pairwise

import numpy as np
import torch
import torch.nn.functional as F
from bank_encoder import without_grad
from einops import rearrange
from torch import nn
from variations import then, with_forward, with_start

from vit_classroom import checks
from vit_classroom.checks.hybrid import CONFIG
from vit_from_scratch.model import ViTConfig, hybrid
from vit_from_scratch.model.stem_config import StemConfig


def padding_by_formula(images, kernel, stride):
    amounts = []
    for side in reversed(images.shape[2:]):
        total = max((math.ceil(side / stride) - 1) * stride + kernel - side, 0)
        amounts += [total // 2, total - total // 2]
    return F.pad(images, amounts)


def padding_by_copying(images, kernel, stride):
    extra = [max((-(-side // stride) - 1) * stride + kernel - side, 0) for side in images.shape[2:]]
    padded = images.new_zeros(
        *images.shape[:2], *(s + e for s, e in zip(images.shape[2:], extra, strict=True))
    )
    top, left = extra[0] // 2, extra[1] // 2
    padded[:, :, top : top + images.shape[2], left : left + images.shape[3]] = images
    return padded


def padding_by_concatenation(images, kernel, stride):
    for axis in (2, 3):
        side = images.shape[axis]
        total = max((side + stride - 1) // stride * stride - stride + kernel - side, 0)
        shape = list(images.shape)
        parts = []
        for count in (total // 2, total - total // 2):
            shape[axis] = count
            parts.append(torch.zeros(shape))
        images = torch.cat([parts[0], images, parts[1]], dim=axis)
    return images


class Convolution(nn.Module):
    def __init__(self, channels, features, kernel, stride):
        super().__init__()
        self.kernel, self.stride = kernel, stride
        self.weight = nn.Parameter(torch.randn(features, channels, kernel, kernel))

    def forward(self, images):
        flat = self.weight.flatten(1)
        flat = flat - flat.mean(1, keepdim=True)
        flat = flat / (flat.square().mean(1, keepdim=True).sqrt() + 1e-5)
        padded = padding_by_formula(images, self.kernel, self.stride)
        return F.conv2d(padded, flat.view_as(self.weight), stride=self.stride)


class ConvolutionWithVarMean(Convolution):
    def forward(self, images):
        variance, mean = torch.var_mean(self.weight, dim=(1, 2, 3), keepdim=True, correction=0)
        filters = (self.weight - mean) / (variance.sqrt() + 1e-5)
        return F.conv2d(padding_by_copying(images, self.kernel, self.stride), filters, stride=self.stride)


class ConvolutionFilterByFilter(Convolution):
    def forward(self, images):
        padded = padding_by_concatenation(images, self.kernel, self.stride)
        maps = []
        for one in self.weight:
            one = (one - one.mean()) / (one.std(unbiased=False) + 1e-5)
            maps.append(F.conv2d(padded, one[None], stride=self.stride))
        return torch.cat(maps, dim=1)


class Bottleneck(hybrid.Bottleneck):
    def __init__(self, channels, width, stride):
        super().__init__(StemConfig(), channels, width, stride)

    def forward(self, features):
        inner = F.relu(self.norm1(self.conv1(features)))
        inner = F.relu(self.norm2(self.conv2(inner)))
        return F.relu(self.shortcut_norm(self.shortcut(features)) + self.norm3(self.conv3(inner)))


class BottleneckAsSequential(Bottleneck):
    def forward(self, features):
        first = (self.conv1, self.norm1, nn.ReLU(), self.conv2, self.norm2, nn.ReLU())
        return (
            nn.Sequential(*first, self.conv3, self.norm3)(features)
            .add(self.shortcut_norm(self.shortcut(features)))
            .clamp(min=0)
        )


class BottleneckWithMaximum(Bottleneck):
    def forward(self, features):
        past = self.shortcut_norm(self.shortcut(features))
        inner = features
        for conv, norm in ((self.conv1, self.norm1), (self.conv2, self.norm2)):
            inner = torch.maximum(norm(conv(inner)), torch.zeros(()))
        return torch.maximum(past + self.norm3(self.conv3(inner)), torch.zeros(()))


def pads_alike(images, kernel, stride):
    return F.pad(images, [(kernel - 1) // 2] * 4)


def pads_before(images, kernel, stride):
    return padding_by_formula(images.flip(2, 3), kernel, stride).flip(2, 3)


def pads_with_the_border(images, kernel, stride):
    padded = padding_by_formula(images, kernel, stride)
    rows, columns = (new - old for new, old in zip(padded.shape[2:], images.shape[2:], strict=True))
    amounts = [columns // 2, columns - columns // 2, rows // 2, rows - rows // 2]
    return F.pad(images, amounts, mode="replicate")


def padding_by_remainder(images, kernel, stride):
    totals = [max(kernel - size % stride, 0) for size in (images.shape[3], images.shape[2])]
    return F.pad(images, [half for total in totals for half in (total // 2, total - total // 2)])


def pads_after(images, kernel, stride):
    padded = padding_by_formula(images, kernel, stride)
    return F.pad(images, (0, padded.shape[3] - images.shape[3], 0, padded.shape[2] - images.shape[2]))


def convolution_of(filters, pad=padding_by_formula):
    def forward(self, images):
        return F.conv2d(pad(images, self.kernel, self.stride), filters(self.weight), stride=self.stride)

    return with_forward(Convolution, forward)


def centred(weight):
    return weight - weight.mean(dim=(1, 2, 3), keepdim=True)


def deviation(weight):
    return centred(weight).square().mean(dim=(1, 2, 3), keepdim=True).sqrt()


def standardised(weight):
    return centred(weight) / (deviation(weight) + 1e-5)


def bottleneck(wire):
    def forward(self, features):
        def inner(first=F.relu, second=F.relu, last=lambda x: x):
            z = second(self.norm2(self.conv2(first(self.norm1(self.conv1(features))))))
            return last(self.norm3(self.conv3(z)))

        past = self.shortcut(features)
        return wire(self, inner, past, self.shortcut_norm(past))

    return with_forward(Bottleneck, forward)


def same(x):
    return x


def norm_by_einops(features, groups, eps=1e-6):
    parts = rearrange(features, "b (g c) h w -> b g (c h w)", g=groups)
    centred = parts - parts.mean(-1, keepdim=True)
    return (centred / (centred.square().mean(-1, keepdim=True) + eps).sqrt()).view_as(features)


def norm_by_layer_norm(features, groups, eps=1e-6):
    parts = features.reshape(len(features), groups, -1)
    return F.layer_norm(parts, parts.shape[-1:], eps=eps).reshape(features.shape)


def norm_in_loops(features, groups, eps=1e-6):
    images = []
    for image in features:
        parts = []
        for part in image.chunk(groups):
            parts.append((part - part.mean()) / torch.sqrt(part.var(unbiased=False) + eps))
        images.append(torch.cat(parts))
    return torch.stack(images)


def norm_over(*axes):
    """Normalise (B, g, c, H, W) over these axes."""

    def function(features, groups, eps=1e-6):
        blocks = features.unflatten(1, (groups, -1))
        variance, mean = torch.var_mean(blocks, axes, correction=0, keepdim=True)
        return ((blocks - mean) / (variance + eps).sqrt()).flatten(1, 2)

    return function


def norm_with(formula):
    def function(features, groups, eps=1e-6):
        parts = features.flatten(2).unflatten(1, (groups, -1)).flatten(2)
        return formula(parts, parts.mean(-1, keepdim=True), eps).view(features.shape)

    return function


def norm_of_every_gth_channel(features, groups, eps=1e-6):
    parts = rearrange(features, "b (c g) h w -> b g (c h w)", g=groups)
    normal = F.layer_norm(parts, parts.shape[-1:], eps=eps)
    return rearrange(normal, "b g (c h w) -> b (c g) h w", h=features.shape[2], w=features.shape[3])


def mean_square(parts, mean):
    return (parts - mean).square().mean(-1, keepdim=True)


def filters_by_formula(weight, eps=1e-5):
    centred = weight - weight.mean(dim=(1, 2, 3), keepdim=True)
    return centred / (centred.square().mean(dim=(1, 2, 3), keepdim=True).sqrt() + eps)


def filters_flat(weight, eps=1e-5):
    flat = weight.flatten(1)
    deviation, mean = torch.std_mean(flat, dim=1, correction=0, keepdim=True)
    return ((flat - mean) / (deviation + eps)).view_as(weight)


def filters_one_by_one(weight, eps=1e-5):
    found = []
    for one in weight:
        variance = (one**2).mean() - one.mean() ** 2
        found.append((one - one.mean()) / (variance**0.5 + eps))
    return torch.stack(found)


def filters_with(formula):
    def function(weight, eps=1e-5):
        centred = weight - weight.mean(dim=(1, 2, 3), keepdim=True)
        return formula(weight, centred, centred.square().mean(dim=(1, 2, 3), keepdim=True), eps)

    return function


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


def stem_with_stride(stage, stride):
    def change(stem):
        for layer in (stem.stages[stage][0].conv2, stem.stages[stage][0].shortcut):
            layer.stride = (stride, stride)

    return with_start(Stem, change)


class StemInAList(Stem):
    def __init__(self, layers, width, dim):
        super().__init__(layers, width, dim)
        stages = list(self.stages)
        del self.stages
        self.stages = stages


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


def cost_of_better_runs(costs, accuracies, wanted):
    right = (accuracies > wanted[:, None]).int().argmax(1)
    low, high = accuracies[right - 1], accuracies[right]
    return costs[right - 1] * (costs[right] / costs[right - 1]) ** ((wanted - low) / (high - low))


def cost_from_the_best(costs, accuracies, wanted):
    best = accuracies.cummax(0).values
    right = torch.searchsorted(best, wanted)
    share = (wanted - best[right - 1]) / (accuracies[right] - best[right - 1])
    return costs[right - 1] * (costs[right] / costs[right - 1]) ** share


def cost_by_interp(costs, accuracies, wanted):
    logs = np.interp(wanted.numpy(), accuracies.numpy(), costs.log().numpy())
    return torch.from_numpy(np.exp(logs)).float()


def cost_by_sorted_interp(costs, accuracies, wanted):
    order = accuracies.argsort()
    logs = np.interp(wanted.numpy(), accuracies[order].numpy(), costs[order].log().numpy())
    return torch.from_numpy(np.exp(logs)).float()


class PreActivation(nn.Module):
    def __init__(self, channels, width, stride=1):
        super().__init__()
        conv = partial(hybrid.StandardisedConv, CONFIG)
        self.norm1, self.conv1 = hybrid.norm(CONFIG, channels), conv(channels, width, 1)
        self.norm2, self.conv2 = hybrid.norm(CONFIG, width), conv(width, width, 3, stride)
        self.norm3, self.conv3 = hybrid.norm(CONFIG, width), conv(width, 4 * width, 1)
        self.shortcut = nn.Identity()
        if stride != 1 or channels != 4 * width:
            self.shortcut = conv(channels, 4 * width, 1, stride)

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


class PreActivationOfPlainFilters(PreActivation):
    def __init__(self, channels, width, stride):
        super().__init__(channels, width, stride)
        for layer in self.modules():
            if isinstance(layer, hybrid.StandardisedConv):
                layer.__class__ = UnstandardisedConv


class UnstandardisedConv(hybrid.StandardisedConv):
    def forward(self, input):
        return F.conv2d(self.padded(input), self.weight, stride=self.stride)


class PreActivationWithANormTooMany(PreActivation):
    def __init__(self, channels, width, stride):
        super().__init__(channels, width, stride)
        self.shortcut_norm = hybrid.norm(CONFIG, 4 * width)


class ConvolutionThatStores(Convolution):
    def forward(self, images):
        self.weight.data = standardised(self.weight.data)
        return F.conv2d(padding_by_formula(images, self.kernel, self.stride), self.weight, stride=self.stride)


class ConvolutionOfThree(Convolution):
    def __init__(self, channels, features, kernel, stride):
        super().__init__(channels, features, kernel, 2)


class BottleneckOfStride(Bottleneck):
    """Its shortcut is changed only where the map is halved."""

    def __init__(self, channels, width, stride):
        super().__init__(channels, width, stride)
        if stride == 1:
            self.shortcut, self.shortcut_norm = nn.Identity(), nn.Identity()


class BottleneckOfChannels(Bottleneck):
    """Its shortcut is changed only where the channels are others."""

    def __init__(self, channels, width, stride):
        super().__init__(channels, width, stride)
        if channels == 4 * width:
            self.shortcut, self.shortcut_norm = nn.Identity(), nn.Identity()


class BottleneckThatOverwrites(Bottleneck):
    def forward(self, features):
        for conv, norm in ((self.conv1, self.norm1), (self.conv2, self.norm2)):
            features = F.relu(norm(conv(features)))
        features = self.norm3(self.conv3(features))
        return F.relu(features + self.shortcut_norm(self.shortcut(features)))


class BottleneckThatDrops(Bottleneck):
    def forward(self, features):
        return F.dropout(super().forward(features), 0.1, self.training)


class UnitOfStride(PreActivation):
    def __init__(self, channels, width, stride=1):
        super().__init__(channels, width, stride)
        if stride == 1:
            self.shortcut = nn.Identity()


class UnitOfChannels(PreActivation):
    def __init__(self, channels, width, stride=1):
        super().__init__(channels, width, stride)
        if channels == 4 * width:
            self.shortcut = nn.Identity()


class UnitOfEarlyStride(PreActivation):
    def __init__(self, channels, width, stride=1):
        super().__init__(channels, width, stride)
        self.conv1.stride, self.conv2.stride = self.conv2.stride, self.conv1.stride


class UnitWithoutDefault(PreActivation):
    def __init__(self, channels, width, stride):
        super().__init__(channels, width, stride)


RIGHT = {
    checks.same_padding: (padding_by_formula, padding_by_copying, padding_by_concatenation),
    checks.standardised_conv: (Convolution, ConvolutionWithVarMean, ConvolutionFilterByFilter),
    checks.bottleneck: (Bottleneck, BottleneckAsSequential, BottleneckWithMaximum),
    checks.group_norm: (norm_by_einops, norm_by_layer_norm, norm_in_loops),
    checks.standardised: (filters_by_formula, filters_flat, filters_one_by_one),
    checks.resnet_stem: (Stem, StemUnitByUnit, StemThatProjectsByConvolution),
    checks.window: (window_by_steps, window_one_by_one, window_by_jump_and_side),
    checks.first_cost: (cost_in_loops, cost_by_argmax, cost_on_the_rising_edge),
    checks.pre_activation: (PreActivation, PreActivationInALoop, PreActivationAsSequential),
}

WRONG = {
    checks.bottleneck: [
        (BottleneckOfStride, "it has other parameters.*missing +shortcut"),
        (BottleneckOfChannels, "it has other parameters.*missing +shortcut"),
        (BottleneckThatDrops, "while it trains it gives something else"),
        (
            with_start(Bottleneck, lambda unit: nn.init.ones_(unit.norm3.weight)),
            "norm3.weight does not begin at 0",
        ),
        (bottleneck(lambda self, inner, past, short: short + inner()), "last ReLU is missing"),
        (
            bottleneck(lambda self, inner, past, short: short + F.relu(inner())),
            "last ReLU stands before the sum",
        ),
        (
            bottleneck(lambda self, inner, past, short: F.relu(short + inner(last=F.relu))),
            "a ReLU before the sum as well",
        ),
        (bottleneck(lambda self, inner, past, short: F.relu(inner())), "input is not added"),
        (
            bottleneck(lambda self, inner, past, short: F.relu(past + inner())),
            "norm of the shortcut is missing",
        ),
        (
            bottleneck(lambda self, inner, past, short: F.relu(short + inner(first=same))),
            "first ReLU is missing",
        ),
        (
            bottleneck(lambda self, inner, past, short: F.relu(short + inner(second=same))),
            "second ReLU is missing",
        ),
        (bottleneck(lambda self, inner, past, short: F.gelu(short + inner())), "a GELU stands in place"),
        (BottleneckThatOverwrites, "the branch has overwritten the features"),
        (with_forward(Bottleneck, nn.Module.forward), "forward is not there"),
        (without_grad(Bottleneck), "no gradient can flow back"),
    ],
    checks.first_cost: [
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
        (
            cost_of_better_runs,
            "first_cost: a run that has just the accuracy wanted.*3 of 4 inputs came out right",
        ),
        (cost_from_the_best, "it begins at that of the run before"),
        (lambda c, a, w: cost_by_interp(c, a.cummax(0).values, w), "it begins at that of the run before"),
    ],
    checks.group_norm: [
        (lambda x, groups, eps=1e-6: norm_by_einops(x, groups, 1e-5), "eps is always 1e-05"),
        (lambda x, groups, eps=1e-6: norm_by_einops(x, groups, 1e-6), "eps is always 1e-06"),
        (lambda x, groups, eps=1e-6: F.group_norm(x, groups), "eps is always 1e-05"),
        (
            lambda x, groups, eps=1e-6: norm_by_einops(x, groups, eps).squeeze(0),
            "wrong where axis 0 of features has length 1",
        ),
        (lambda x, groups, eps=1e-6: norm_by_einops(x, 2, eps), "2 of 4 inputs came out right"),
        (lambda x, groups, eps=1e-5: norm_by_einops(x, groups, eps), "here its default is 1e-6"),
        (lambda x, groups, eps: norm_by_einops(x, groups, eps), "missing 1 required"),
        (norm_over(2), "each place is normalised for itself"),
        (norm_over(1, 2), "as in LayerNorm"),
        (norm_over(3, 4), "each channel is normalised for itself"),
        (norm_over(1, 2, 3, 4), "run over the whole image"),
        (norm_over(0, 2, 3, 4), "run over the batch as well"),
        (norm_over(0, 3, 4), "this is BatchNorm"),
        (norm_of_every_gth_channel, r"\(g c\), not \(c g\)"),
        (
            lambda x, groups, eps=1e-6: norm_by_einops(x, x.shape[1] // groups, eps),
            "how many groups there are",
        ),
        (
            norm_with(lambda x, mean, eps: (x - mean) / (x.var(-1, keepdim=True) + eps).sqrt()),
            "divides by n - 1",
        ),
        (
            norm_with(lambda x, mean, eps: (x - mean) / (mean_square(x, mean).sqrt() + eps)),
            "eps is added to the standard deviation",
        ),
        (norm_with(lambda x, mean, eps: (x - mean) / mean_square(x, mean).sqrt()), "eps is left out"),
        (norm_with(lambda x, mean, eps: (x - mean) / (mean_square(x, mean) + eps)), "divide by its root"),
        (
            norm_with(lambda x, mean, eps: x / (mean_square(x, mean) + eps).sqrt()),
            "the mean is not taken away",
        ),
        (norm_with(lambda x, mean, eps: x - mean), "nothing is divided by the standard deviation"),
        (
            lambda x, groups, eps=1e-6: F.layer_norm(
                x.reshape(len(x), groups, -1), (x[0].numel() // groups,), eps=eps
            ),
            "its values are right: reshape them",
        ),
        (
            norm_with(lambda x, mean, eps: (x - mean) / (mean_square(x, mean).detach() + eps).sqrt()),
            "gradient of input 1 is not",
        ),
    ],
    checks.pre_activation: [
        (UnitWithoutDefault, "missing 1 required"),
        (UnitOfStride, "it has other parameters.*missing +shortcut"),
        (UnitOfChannels, "it has other parameters.*missing +shortcut"),
        (PreActivationOfPlainFilters, "filters are used as they are; take StandardisedConv"),
        (
            pre_activation(lambda self, x, n, z, branch, path: F.relu(path + branch(z))),
            "a ReLU follows the sum",
        ),
        (pre_activation(lambda self, x, n, z, branch, path: branch(z)), "the input is not added"),
        (pre_activation(lambda self, x, n, z, branch, path: path + branch(n)), "first ReLU is missing"),
        (
            pre_activation(lambda self, x, n, z, branch, path: path + branch(z, lambda y: y)),
            "second ReLU is missing",
        ),
        (
            pre_activation(lambda self, x, n, z, branch, path: path + branch(x)),
            "first norm and ReLU are missing",
        ),
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
        (UnitOfEarlyStride, "the stride stands at conv1; it belongs to conv2"),
        (PreActivationWithANormTooMany, "unexpected shortcut_norm.weight"),
    ],
    checks.resnet_stem: [
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
        (stem_with_stride(0, 2), "first stage halves the map as well"),
        (stem_with_stride(1, 1), "a later stage does not halve"),
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
    ],
    checks.same_padding: [
        (
            lambda images, kernel, stride: padding_by_formula(images, kernel, 2),
            "right only where|pads|returned",
        ),
        (lambda images, kernel, stride: padding_by_formula(images, 3, stride), "right only where|returned"),
        (pads_alike, "pads both sides alike"),
        (pads_before, "stand before the image"),
        (pads_with_the_border, "repeats the border"),
        (pads_after, "all of the padding stands after"),
        (padding_by_remainder, "where the stride divides the size"),
        (lambda images, kernel, stride: images, "does not pad"),
        (lambda images, kernel, stride: padding_by_formula(images, kernel, 1), "pads as for stride 1"),
        (
            lambda images, kernel, stride: F.pad(images, [kernel // 2] * 4),
            "pads both sides alike|kernel // 2",
        ),
        (then(padding_by_formula, torch.Tensor.detach), "no gradient"),
        (hybrid.same_padding, "the package's own"),
    ],
    checks.standardised: [
        (lambda w, eps=1e-5: filters_by_formula(w, eps).clamp(-3, 3) * 0.5, "of them agree"),
        (filters_with(lambda w, centred, variance, eps: w), "come back as they are"),
        (
            filters_with(lambda w, centred, variance, eps: w / (variance.sqrt() + eps)),
            "mean of the filters is not",
        ),
        (filters_with(lambda w, centred, variance, eps: centred), "not divided by their standard deviation"),
        (
            filters_with(lambda w, centred, variance, eps: centred / (variance + eps).sqrt()),
            "eps is added to the variance",
        ),
        (
            filters_with(lambda w, centred, variance, eps: centred / (variance + eps)),
            "divided by the variance",
        ),
        (filters_with(lambda w, centred, variance, eps: centred / variance.sqrt()), "there is no eps"),
        (
            filters_with(
                lambda w, centred, variance, eps: centred / (w.std(dim=(1, 2, 3), keepdim=True) + eps)
            ),
            "divides by n - 1",
        ),
        (
            lambda w, eps=1e-5: (w - w.mean()) / (w.std(unbiased=False) + eps),
            "one mean and standard deviation for all filters",
        ),
        (
            lambda w, eps=1e-5: (
                (w - w.mean((2, 3), keepdim=True)) / (w.std((2, 3), keepdim=True, unbiased=False) + eps)
            ),
            "over rows and columns alone",
        ),
        (lambda w, eps=1e-5: (w - w.mean(0)) / (w.std(0, unbiased=False) + eps), "over the filters, axis 0"),
        (lambda w, eps=1e-5: filters_by_formula(w, 1e-5), "eps is always 1e-5"),
        (lambda w, eps=1e-3: filters_by_formula(w, eps), "eps is 0.001 where none is handed in.*no eps"),
        (lambda w, eps: filters_by_formula(w, eps), r"cannot be called as standardised\(weight\)"),
        (lambda w, eps=1e-5: filters_by_formula(w.detach(), eps), "no gradient can flow back"),
    ],
    checks.standardised_conv: [
        (ConvolutionOfThree, "expected|an argument is not used"),
        (
            convolution_of(standardised, lambda x, *_: padding_by_formula(x, 3, 2)),
            "right for .* and not for|expected",
        ),
        (convolution_of(same), "used as they are"),
        (ConvolutionThatStores, r"changes its own weights \(weight\)"),
        (convolution_of(centred), "not divided by their standard deviation"),
        (convolution_of(lambda w: w / (deviation(w) + 1e-5)), "mean of the filters"),
        (
            convolution_of(lambda w: centred(w) / (deviation(w) ** 2 + 1e-5).sqrt()),
            "eps is added to the variance",
        ),
        (convolution_of(lambda w: centred(w) / (deviation(w) ** 2 + 1e-5)), "divided by the variance"),
        (convolution_of(lambda w: centred(w) / deviation(w)), "there is no eps"),
        (
            convolution_of(lambda w: centred(w) / (w.std(dim=(1, 2, 3), keepdim=True) + 1e-5)),
            "divides by n - 1",
        ),
        (
            convolution_of(lambda w: (w - w.mean()) / (w.std(unbiased=False) + 1e-5)),
            "one mean and standard deviation for all",
        ),
        (convolution_of(standardised, pads_alike), "same on both sides"),
        (convolution_of(standardised, lambda x, *_: x), "not padded"),
        (
            with_forward(
                Convolution, lambda self, x: F.conv2d(padding_by_formula(x, 3, 1), standardised(self.weight))
            ),
            "the stride is 1",
        ),
        (convolution_of(lambda w: standardised(w.detach())), "weight receives no gradient"),
        (convolution_of(lambda w: centred(w) / (deviation(w).detach() + 1e-5)), "gradient of weight is not"),
    ],
    checks.window: [
        (lambda places, layers: window_by_steps(places + 1, layers), "values are not"),
        (lambda places, layers: window_by_steps(places, layers[:1]), "right only where|values are not"),
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
        (lambda places, layers: window_by_steps(places, layers).T, "its axes stand in another order"),
        (lambda places, layers: window_by_steps(places, layers).clamp(min=0), "cut off at row 0"),
        (lambda places, layers: window_by_steps(places, layers).tolist(), "it returned a list of"),
    ],
}
"""Each wrong answer, and a pattern of what is said about it."""
