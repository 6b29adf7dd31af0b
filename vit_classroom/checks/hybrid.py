"""Checks of chapter 7: norms, and the pieces of the hybrid's ResNet."""

import copy
from collections.abc import Callable, Sequence
from functools import partial

import numpy as np
import torch
import torch.nn.functional as F
from einops import rearrange
from torch import Tensor, nn

from vit_classroom.checks.judging import Arguments, class_check, function_check
from vit_classroom.checks.report import Case, normalised, randomise
from vit_classroom.checks.starts import starts_at_zero
from vit_from_scratch.model import hybrid as ours
from vit_from_scratch.model.config import ViTConfig
from vit_from_scratch.model.stem_config import StemConfig


@function_check(
    "(B, C, H, W)",
    'chapter 7, "A norm that minds its own image"',
    lambda features, groups, eps=1e-6: F.group_norm(features, groups, eps=eps),
    [((2, 6, 3, 5), 2, 1e-6), ((1, 12, 4, 3), 4, 1e-2), ((2, 8, 5, 2), 2, 1e-3), ((2, 6, 4, 3), 3, None)],
)
def group_norm(shape: tuple[int, int, int, int], groups: int, eps: float | None) -> Case:
    """Check a function ``(features, groups, eps=1e-6)``: GroupNorm of (B, C, H, W), unscaled."""
    batch, channels, height, width = shape
    level = torch.randn(batch, channels, 1, 1)  # each channel has its own
    features = 0.2 * (level + torch.randn(batch, channels, height, width))
    if eps is None:
        features = features / 100  # so small that eps counts
        other = F.group_norm(features, groups, eps=1e-5)
        mistakes = {"eps is 1e-5 where none is handed in, as in torch; here its default is 1e-6": other}
        mistakes |= _wrong_norms(features, groups, 1e-6)
        return Case((features, groups), F.group_norm(features, groups, eps=1e-6), mistakes)
    right = F.group_norm(features, groups, eps=eps)
    return Case((features, groups, eps), right, _wrong_norms(features, groups, eps))


def _wrong_norms(features: Tensor, groups: int, eps: float) -> dict[str, Tensor]:
    shape, channels = features.shape, features.shape[1]
    size = channels // groups
    blocks = features.unflatten(1, (groups, size))
    mean, variance = blocks.mean((2, 3, 4), keepdim=True), blocks.var((2, 3, 4), keepdim=True, correction=0)
    centred, divisor = blocks - mean, (variance + eps).sqrt()

    def over(*axes: int, correction: int = 0) -> Tensor:
        """Normalise (B, g, c, H, W) over these axes."""
        return normalised(blocks, axes, eps, correction).view(shape)

    mixed = rearrange(features, "b (c g) h w -> b (g c) h w", g=groups)
    strided = rearrange(F.group_norm(mixed, groups, eps=eps), "b (g c) h w -> b (c g) h w", g=groups)
    as_size = F.group_norm(features, size, eps=eps)
    outside = (centred / (variance.sqrt() + eps)).view(shape)
    return {
        "each place is normalised for itself, over the channels of its group; mean and variance of a group "
        "run over all places, too": over(2),
        "each place is normalised over its channels, as in LayerNorm; a group has one mean and variance, "
        "over some channels and all places": over(1, 2),
        "each channel is normalised for itself; those of a group share one mean and one variance": over(3, 4),
        "mean and variance run over the whole image; each group has its own": over(1, 2, 3, 4),
        "mean and variance run over the batch as well; each image has its own": over(0, 2, 3, 4),
        "this is BatchNorm, a channel over all images; GroupNorm stays within one image": over(0, 3, 4),
        "a group takes every g-th channel; it takes neighbours: (g c), not (c g)": strided,
        "`groups` is taken for the channels of a group; it is how many groups there are": as_size,
        "the variance divides by n - 1; take the mean square (correction=0)": over(2, 3, 4, correction=1),
        "eps is added to the standard deviation; it belongs to the variance, under the root": outside,
        **{
            f"eps is always {other:g}; take the one that is handed in": (
                centred / (variance + other).sqrt()
            ).view(shape)
            for other in (1e-5, 1e-6)
            if other != eps
        },
        "eps is left out": (centred / variance.sqrt()).view(shape),
        "it divides by the variance; divide by its root": (centred / (variance + eps)).view(shape),
        "the mean is not taken away": (blocks / divisor).view(shape),
        "the mean is taken away, and nothing is divided by the standard deviation": centred.view(shape),
    }


def _standardise(weight: Tensor, eps: float = 1e-5) -> Tensor:
    centred = weight - weight.mean(dim=(1, 2, 3), keepdim=True)
    return centred / (centred.square().mean(dim=(1, 2, 3), keepdim=True).sqrt() + eps)


@function_check(
    "(features, channels, kernel, kernel)",
    'chapter 7, "Standardised weights"',
    _standardise,
    [
        ((4, 3, 3, 3), 1e-3, 1e-5),
        ((5, 2, 5, 5), 0.02, 1e-3),
        ((6, 4, 2, 2), 0.3, 1e-2),
        ((3, 2, 3, 3), 1e-3, None),
    ],
)
def standardised(shape: tuple[int, int, int, int], scale: float, eps: float | None) -> Case:
    """Check a function ``(weight, eps=1e-5)`` that brings each filter to mean 0 and standard deviation 1.

    The filters are (features, channels, kernel, kernel).
    """
    weight = scale * (torch.randn(shape[0], 1, 1, 1) + torch.randn(shape))
    mistakes = {"the filters come back as they are": weight, **_wrong_filters(weight, eps or 1e-5)}
    if eps is None:
        mistakes |= {
            f"eps is {other:g} where none is handed in; here its default is 1e-5": _standardise(weight, other)
            for other in (1e-3, 1e-4, 1e-6)
        }
        return Case((weight,), _standardise(weight), mistakes, "no eps")
    if eps != 1e-5:
        mistakes["eps is always 1e-5; take the one that is handed in"] = _standardise(weight)
    return Case((weight, eps), _standardise(weight, eps), mistakes, f"eps {eps:g}")


def _wrong_filters(weight: Tensor, eps: float) -> dict[str, Tensor]:
    def over(*axes: int, correction: int = 0) -> Tensor:
        spread = weight.std(axes, keepdim=True, correction=correction)
        return (weight - weight.mean(axes, keepdim=True)) / (spread + eps)

    centred = weight - weight.mean((1, 2, 3), keepdim=True)
    std = weight.std((1, 2, 3), keepdim=True, correction=0)
    adds = "the reference code adds"
    return {
        "the mean of the filters is not taken away": weight / (std + eps),
        "the filters are not divided by their standard deviation": centred,
        f"eps is added to the variance; {adds} it to the standard deviation": centred / (std**2 + eps).sqrt(),
        "the filters are divided by the variance; divide by the standard deviation": centred / (std**2 + eps),
        f"there is no eps; {adds} one to the standard deviation": centred / std,
        "the variance divides by n - 1; take the mean square (correction=0)": over(1, 2, 3, correction=1),
        "one mean and standard deviation for all filters; each filter has its own": over(0, 1, 2, 3),
        "mean and standard deviation run over the filters, axis 0; each filter has its own": over(0),
        "mean and standard deviation run over rows and columns alone; over the channels, too": over(2, 3),
    }


UNITS: list[Arguments] = [(32, 8, 1), (16, 8, 2), (16, 8, 1), (32, 8, 2)]
"""Channels, width and stride of a unit: neither the channels nor the stride changes, both, or one of them."""
CONFIG = StemConfig("resnet", layers=(1, 1), width=8)
"""For the eps of the reference code."""


@function_check(
    "(B, C, H', W')",
    'chapter 7, "Build the ResNet: a border first"',
    ours.same_padding,
    [(8, 8, 3, 2), (14, 9, 7, 2), (8, 6, 3, 1), (9, 6, 1, 2), (7, 8, 5, 3)],
    exact=True,
)
def same_padding(height: int, width: int, kernel: int, stride: int) -> Case:
    """Check a function ``(images, kernel, stride)`` that pads (B, C, H, W) as the reference code does."""
    images = torch.randn(2, 3, height, width)
    right = ours.same_padding(images, kernel, stride)
    before = ours.same_padding(images.flip(2, 3), kernel, stride).flip(2, 3)
    down, across = (new - old for new, old in zip(right.shape[2:], images.shape[2:], strict=True))
    sides = (across // 2, across - across // 2, down // 2, down - down // 2)
    more = [max(kernel - size % stride, 0) for size in (width, height)]
    mistakes = {
        "it pads both sides alike; SAME pads as little as it can, and puts the odd row and column "
        "after the image": F.pad(images, [(kernel - 1) // 2] * 4),
        "it pads as for stride 1; with a larger stride SAME needs less": ours.same_padding(images, kernel, 1),
        "where the stride divides the size, `kernel - size % stride` is too much; SAME needs kernel - stride "
        "there": F.pad(images, [half for total in more for half in (total // 2, total - total // 2)]),
        "it pads kernel // 2 on each side; SAME pads as little as it can": F.pad(images, [kernel // 2] * 4),
        "it does not pad": images,
        "the odd row and column stand before the image; SAME puts them after it": before,
        "rows and columns are swapped": ours.same_padding(images.mT, kernel, stride).mT,
        "it repeats the border; SAME pads with zeros": F.pad(images, sides, mode="replicate"),
        "all of the padding stands after the image; SAME splits it": F.pad(images, (0, across, 0, down)),
    }
    return Case((images, kernel, stride), right, mistakes)


def _small_conv(*sizes: int) -> ours.StandardisedConv:
    """Make a convolution with small filters, so that the eps and where it goes can be seen."""
    reference = randomise(ours.StandardisedConv(CONFIG, *sizes))
    with torch.no_grad():
        reference.weight.mul_(1e-3)
    return reference


@class_check(
    "StandardisedConv(channels, features, kernel, stride)",
    "(B, features, H', W')",
    'chapter 7, "Standardised weights"',
    _small_conv,
    [(3, 6, 3, 2), (2, 4, 5, 1)],
    [(2, 8, 7), (1, 7, 6)],
)
def standardised_conv(reference: ours.StandardisedConv, batch: int, height: int, width: int) -> Case:
    """Check a class like :class:`vit_from_scratch.model.hybrid.StandardisedConv`.

    It is called as ``cls(channels, features, kernel, stride)``; one parameter, ``weight``.
    """
    images, filters = torch.randn(batch, reference.in_channels, height, width), reference.standardised()
    kernel, stride = reference.kernel_size[0], reference.stride[0]
    padded = ours.same_padding(images, kernel, stride)
    alike = F.conv2d(images, filters, stride=stride, padding=kernel // 2)
    wrong = {"the filters are used as they are; standardise them each time": reference.weight}
    wrong |= _wrong_filters(reference.weight, reference.eps)
    mistakes = {sentence: F.conv2d(padded, each, stride=stride) for sentence, each in wrong.items()} | {
        "the padding is the same on both sides; the reference code pads as SAME (see same_padding)": alike,
        "the images are not padded": F.conv2d(images, filters, stride=stride),
        "the stride is 1": F.conv2d(ours.same_padding(images, kernel, 1), filters),
    }
    return Case((images,), reference(images), mistakes)


@class_check(
    "Bottleneck(channels, width, stride)",
    "(B, 4 width, H', W')",
    'chapter 7, "The bottleneck"',
    lambda *sizes: randomise(ours.Bottleneck(CONFIG, *sizes)),
    UNITS,
    [()],
    starts=[starts_at_zero("norm3.weight", why="a new unit hands on what it got")],
)
def bottleneck(reference: ours.Bottleneck) -> Case:
    """Check a class like :class:`vit_from_scratch.model.hybrid.Bottleneck`.

    It is called as ``cls(channels, width, stride)``; submodules ``conv1`` to ``conv3``, ``norm1`` to
    ``norm3``, ``shortcut`` and ``shortcut_norm``, the last two `nn.Identity()` where nothing changes.
    """
    features = torch.randn(2, reference.conv1.in_channels, 6, 4)
    mistakes = partial(_bottleneck_mistakes, reference, features)
    return Case((features,), reference(features), mistakes)


def _bottleneck_mistakes(reference: ours.Bottleneck, features: Tensor) -> dict[str, Tensor]:
    first, second, third = reference.conv1, reference.conv2, reference.conv3
    norm_1, norm_2, norm_3 = reference.norm1, reference.norm2, reference.norm3
    start = F.relu(norm_1(first(features)))
    inner = norm_3(third(F.relu(norm_2(second(start)))))
    past = reference.shortcut(features)
    short = reference.shortcut_norm(past)
    linear_1 = norm_3(third(F.relu(norm_2(second(norm_1(first(features)))))))
    linear_2 = norm_3(third(norm_2(second(start))))
    mistakes = {
        "the last ReLU is missing; it follows the sum": short + inner,
        "the last ReLU stands before the sum; it follows it": short + F.relu(inner),
        "there is a ReLU before the sum as well": F.relu(short + F.relu(inner)),
        "the input is not added": F.relu(inner),
        "the norm of the shortcut is missing": F.relu(past + inner),
        "the first ReLU is missing": F.relu(short + linear_1),
        "the second ReLU is missing": F.relu(short + linear_2),
        "the last norm is missing": F.relu(short + third(F.relu(norm_2(second(start))))),
        "a GELU stands in place of the last ReLU": F.gelu(short + inner),
    }
    if isinstance(reference.shortcut, nn.Identity):
        mistakes["the branch has overwritten the features; the shortcut reads them as they came"] = F.relu(
            inner + inner
        )
    return mistakes


@class_check(
    "Stem(layers, width, dim)",
    "(B, N, D)",
    'chapter 7, "The stack"',
    lambda n, w, d: randomise(
        ours.ResNetStem(ViTConfig(32, 8, dim=d, heads=2, stem=StemConfig("resnet", layers=n, width=w)))
    ),
    ((2, 1), 8, 12),
    [(2, 3, 24, 40), (1, 3, 32, 16)],
)
def resnet_stem(reference: ours.ResNetStem, shape: tuple[int, int, int, int]) -> Case:
    """Check a class like :class:`vit_from_scratch.model.hybrid.ResNetStem`.

    It is called as ``cls(layers, width, dim)``; submodules ``root``, ``root_norm``, ``stages`` (a list of
    `nn.Sequential`, one a stage) and ``projection``, a linear layer.
    """
    images = torch.randn(shape)
    return Case((images,), reference(images), partial(_stem_mistakes, reference, images))


def _stem_mistakes(reference: ours.ResNetStem, images: Tensor) -> dict[str, Tensor]:
    normed = reference.root_norm(reference.root(images))
    root = F.relu(normed)

    def pooled(features: Tensor) -> Tensor:
        return F.max_pool2d(ours.same_padding(features, 3, 2), 3, 2)

    def stem_with(stage: int, stride: int) -> nn.ModuleList:
        """The same stages, with another stride in the first unit of one."""
        stages = copy.deepcopy(reference.stages)
        for name in ("conv2", "shortcut"):
            layer = stages.get_submodule(f"{stage}.0.{name}")
            setattr(layer, "stride", (stride, stride))  # noqa: B010 - typed as a module
        return stages

    def staged(features: Tensor, stages: nn.ModuleList = reference.stages) -> Tensor:
        for stage in stages:
            features = stage(features)
        return features

    def tokens(features: Tensor, order: str = "gh gw") -> Tensor:
        return reference.projection(rearrange(features, f"b c gh gw -> b ({order}) c"))

    features = staged(pooled(root))
    batch, channels = features.shape[:2]
    halved, whole = (staged(pooled(root), stem_with(stage, stride)) for stage, stride in ((0, 2), (1, 1)))
    wrong = {
        "the max pool after the root is missing": staged(root),
        "the max pool is padded on both sides alike; pad as SAME": staged(F.max_pool2d(root, 3, 2, 1)),
        "the max pool is not padded; pad as SAME": staged(F.max_pool2d(root, 3, 2)),
        "the max pool looks at 2 x 2 places; it looks at 3 x 3": staged(F.max_pool2d(root, 2, 2)),
        "a mean stands in place of the max pool": staged(F.avg_pool2d(ours.same_padding(root, 3, 2), 3, 2)),
        "the ReLU after the root is missing": staged(pooled(normed)),
        "the norm after the root is missing": staged(pooled(F.relu(reference.root(images)))),
        "the first stage halves the map as well; the pool has done so, and it keeps the size": halved,
        "a later stage does not halve the map; its first unit has a stride of 2": whole,
    }
    return {sentence: tokens(each) for sentence, each in wrong.items()} | {
        "the places come column by column; they come row by row, as patches do": tokens(features, "gw gh"),
        "the projection to width D is missing": rearrange(features, "b c gh gw -> b (gh gw) c"),
        "the map is reshaped without moving its channels to the end; (B, C', gh, gw) has to become "
        "(B, gh, gw, C') first": reference.projection(features.reshape(batch, -1, channels)),
    }


Layers = Sequence[tuple[int, int, int]]
"""Kernel, stride and padding before, of each layer from the photo on."""


def _window(places: Tensor, layers: Layers) -> Tensor:
    first = last = places
    for kernel, stride, padding in reversed(layers):
        first, last = first * stride - padding, last * stride - padding + kernel - 1
    return torch.stack([first, last], dim=1)


@function_check(
    "(K, 2)",
    'chapter 7, exercise "Which pixels does a place see?"',
    _window,
    [((3, 2, 0),), ((7, 2, 2), (3, 1, 1)), ((5, 3, 1), (3, 2, 0), (1, 2, 0), (3, 1, 1))],
    exact=True,
    gradients=False,
)
def window(layers: tuple[tuple[int, int, int], ...]) -> Case:
    """Check a function ``(places, layers)`` that gives the first and the last pixel row of each window.

    Places are (K,) row numbers of the last map, layers (kernel, stride, padding before), the first one next
    to the photo; the result is (K, 2), int64.
    """
    places = torch.cat([torch.zeros(1, dtype=torch.int64), torch.randint(1, 20, (len(layers) + 1,))])

    def changed(change: Callable[[int, int, int], tuple[int, int, int]]) -> Tensor:
        return _window(places, [change(*layer) for layer in layers])

    right = _window(places, layers)
    first, last = right.T
    forwards, from_first = (
        _window(places, layers[::-1]),
        torch.stack([first, first + layers[0][0] - 1], dim=1),
    )
    far = "each layer's last row is one too far; a kernel of k reaches k - 1 rows beyond its first"
    centred = "the window lies evenly around the place; it begins at place * stride - padding"
    multiplied = "the padding is multiplied by the stride; it counts rows of the finer map"
    added = "the padding is added; it lies before the map, so it is taken away"
    mistakes = {
        "the layers are followed from the photo on; start at the last map, so at the last layer": forwards,
        far: changed(lambda k, s, p: (k + 1, s, p)),
        added: changed(lambda k, s, p: (k, s, -p)),
        "the padding is left out": changed(lambda k, s, p: (k, s, 0)),
        "the stride is left out": changed(lambda k, s, p: (k, 1, p)),
        multiplied: changed(lambda k, s, p: (k, s, p * s)),
        "a layer's window grows from its first row alone; follow its last row, too": from_first,
        centred: changed(lambda k, s, p: (k, s, (k - 1) // 2)),
        "the first row and the side of the window; asked for are its first and its last row": torch.stack(
            [first, last - first + 1], dim=1
        ),
        "last and first row have changed places": right.flip(1),
        "the window is cut off at row 0; rows of padding count, and have numbers below 0": right.clamp(min=0),
    }
    return Case((places, layers), right, mistakes)


def _crossings(costs: Tensor, accuracies: Tensor, wanted: Tensor) -> Tensor:
    return _read_off(costs.log(), accuracies, wanted).exp()


def _read_off(
    prices: Tensor,
    heights: Tensor,
    wanted: Tensor,
    place: Callable[[Tensor], Tensor] = lambda share: share,
    which: int = 0,
) -> Tensor:
    """Where the line first (or last, -1) rises to each height; with another `place` it is read wrongly."""
    low, high = torch.minimum(heights[1:], heights[:-1]), torch.maximum(heights[1:], heights[:-1])
    found = []
    for height in wanted:
        i = ((low <= height) & (height <= high)).nonzero()[which]
        share = place((height - heights[i]) / (heights[i + 1] - heights[i]))
        found.append((1 - share) * prices[i] + share * prices[i + 1])
    return torch.cat(found)


@function_check(
    "(K,)",
    'chapter 7, exercise "Two to four times cheaper"',
    _crossings,
    ["rises", "dips", "dips", "exact"],
    gradients=False,
)
def first_cost(kind: str) -> Case:
    """Check a function ``(costs, accuracies, wanted)``: where a line through runs first reaches an accuracy.

    Costs (n,) rise, accuracies (n,) need not always; the line is straight on a logarithmic axis of costs; of
    each accuracy that is wanted, (K,), the result has the smallest cost at which the line is as high.
    """
    count = 6
    costs = (0.3 + torch.rand(count)).cumsum(0).mul(1.2).exp()
    accuracies = 70 + (1 + 2 * torch.rand(count)).cumsum(0)
    if kind == "dips":
        accuracies[2] = accuracies[3] + 0.3 + 0.5 * torch.rand(())  # as ViT-L/32 and B/16 in Table 6
    top = accuracies.max()
    wanted = accuracies[0] + (top - accuracies[0]) * (0.05 + 0.9 * torch.rand(7))
    if kind == "dips":
        wanted[0] = (accuracies[4] + accuracies[5]) / 2
        wanted[1] = (accuracies[2] + accuracies[3]) / 2  # the line has it three times
        wanted[2] = (accuracies[2] + accuracies[4]) / 2  # above the best before run 3, and so above run 3
    if kind == "exact":  # a run has just what is wanted, and the next ones have less
        costs = 10.0 ** torch.arange(5)
        accuracies, wanted = torch.tensor([50.0, 60.0, 52.0, 55.0, 70.0]), torch.tensor([60.0, 57.0])
    right = _crossings(costs, accuracies, wanted)
    logs, rank = costs.log(), accuracies.argsort()

    def read(place: Callable[[Tensor], Tensor], which: int = 0) -> Tensor:
        return _read_off(logs, accuracies, wanted, place, which).exp()

    def interpolated(accuracies: Tensor, logs: Tensor) -> Tensor:
        found = np.interp(wanted.numpy(), accuracies.numpy(), logs.numpy())
        return torch.from_numpy(np.exp(found)).float()

    straight = _read_off(costs, accuracies, wanted)
    misread, ranked = interpolated(accuracies, logs), interpolated(accuracies[rank], logs[rank])
    best, better = accuracies.cummax(0).values, (accuracies > wanted[:, None]).int().argmax(1)
    share = (wanted - accuracies[better - 1]) / (accuracies[better] - accuracies[better - 1])
    of_first = "that is the cost of the first run that is good enough; the line reaches the accuracy before"
    nearest = (accuracies - wanted[:, None]).abs().argmin(1)
    mistakes = {
        "the line is straight in the cost; on a logarithmic axis it is straight in log(cost)": straight,
        of_first: read(torch.ones_like),
        "that is the cost of the run before; the line reaches the accuracy after it": read(torch.zeros_like),
        "that is the run whose accuracy is nearest; take the line between two runs": costs[nearest],
        "the two ends of the piece of line have changed their shares": read(lambda share: 1 - share),
        "that is the logarithm of the cost; take exp of it": right.log(),
        "that is the logarithm of the cost, to base 10; take 10 to its power": right.log10(),
        "that is the last place at which the line has this accuracy; take the first": read(lambda s: s, -1),
        "np.interp needs accuracies that rise from run to run, and these do not": misread,
        "the runs are put in order of accuracy, which makes another line; they stay in order of cost": ranked,
        "a piece of line begins at the best accuracy so far; it begins at that of the run before": (
            interpolated(best, logs)
        ),
        "a run that has just the accuracy wanted is passed by; it is good enough: >=, not >": (
            (1 - share) * logs[better - 1] + share * logs[better]
        ).exp(),
    }
    return Case((costs, accuracies, wanted), right, mistakes)


class _PreActivation(nn.Module):
    """The unit of BiT's ResNets (He et al., 2016, "Identity mappings")."""

    def __init__(self, channels: int, width: int, stride: int = 1) -> None:
        super().__init__()
        conv = partial(ours.StandardisedConv, CONFIG)
        self.norm1, self.conv1 = ours.norm(CONFIG, channels), conv(channels, width, 1)
        self.norm2, self.conv2 = ours.norm(CONFIG, width), conv(width, width, 3, stride)
        self.norm3, self.conv3 = ours.norm(CONFIG, width), conv(width, 4 * width, 1)
        self.changes = stride != 1 or channels != 4 * width
        self.shortcut = conv(channels, 4 * width, 1, stride) if self.changes else nn.Identity()

    def branch(self, start: Tensor, second: Callable[[Tensor], Tensor] = F.relu) -> Tensor:
        """What the three convolutions make of features that are normed and through a ReLU."""
        return self.conv3(F.relu(self.norm3(self.conv2(second(self.norm2(self.conv1(start)))))))

    def forward(self, features: Tensor) -> Tensor:
        start = F.relu(self.norm1(features))
        return (self.shortcut(start) if self.changes else features) + self.branch(start)


@class_check(
    "PreActivation(channels, width, stride)",
    "(B, 4 width, H', W')",
    'chapter 7, exercise "A unit that norms first"',
    lambda *sizes: randomise(_PreActivation(*sizes)),
    [*UNITS, (32, 8)],
    [()],
)
def pre_activation(reference: _PreActivation) -> Case:
    """Check a class of residual units in which norm and ReLU come before each convolution.

    It is called as ``cls(channels, width, stride=1)``; submodules ``norm1``, ``conv1`` to ``norm3``,
    ``conv3``, and ``shortcut``, a convolution where stride or width changes and `nn.Identity()` where
    nothing does.
    """
    features = torch.randn(2, reference.conv1.in_channels, 6, 4)
    normed = reference.norm1(features)
    start = F.relu(normed)
    inner = reference.branch(start)
    past = reference.shortcut(start) if reference.changes else features
    late = reference.branch(reference.norm1(F.relu(features)))
    plain = copy.deepcopy(reference)
    for layer in plain.modules():
        if isinstance(layer, ours.StandardisedConv):
            layer.standardised = partial(getattr, layer, "weight")
    mistakes = {
        "a ReLU follows the sum; in a pre-activation unit nothing does": F.relu(past + inner),
        "the input is not added": inner,
        "the first ReLU is missing": past + reference.branch(normed),
        "the second ReLU is missing": past + reference.branch(start, lambda x: x),
        "the first norm and ReLU are missing": past + reference.branch(features),
        "the first ReLU stands before its norm; norm, ReLU, convolution is the order": past + late,
        "the filters are used as they are; take StandardisedConv": plain(features),
    }
    if reference.conv2.stride != (1, 1):
        early = copy.deepcopy(reference)
        early.conv1.stride, early.conv2.stride = reference.conv2.stride, (1, 1)
        mistakes["the stride stands at conv1; it belongs to conv2, the 3 x 3"] = early(features)
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
    return Case((features,), reference(features), mistakes)
