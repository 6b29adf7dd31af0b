"""Checks of chapter 7: the pieces of the hybrid's ResNet."""

import copy
from collections.abc import Callable

import torch
import torch.nn.functional as F
from einops import rearrange
from torch import Tensor, nn

from vit_classroom.checks.judging import check, judge_function, judge_module
from vit_classroom.checks.norms import wrong_filters
from vit_classroom.checks.report import Case, Piece, randomise
from vit_classroom.checks.starts import starts_at_zero
from vit_from_scratch.model import hybrid as ours
from vit_from_scratch.model.config import ViTConfig
from vit_from_scratch.model.stem_config import StemConfig

PADDING = Piece(
    "same_padding",
    "same_padding(images, kernel, stride)",
    "(B, C, H', W')",
    'chapter 7, "A border with two sides"',
    exact=True,
)
CONVOLUTION = Piece(
    "StandardisedConv",
    "StandardisedConv(channels, features, kernel, stride)",
    "(B, features, H', W')",
    'chapter 7, "Standardised weights"',
)
BOTTLENECK = Piece(
    "Bottleneck", "Bottleneck(channels, width, stride)", "(B, 4 width, H', W')", 'chapter 7, "The bottleneck"'
)
STEM = Piece("Stem", "Stem(layers, width, dim)", "(B, N, D)", 'chapter 7, "The stack, in two variants"')
CONFIG = ViTConfig(32, 8, stem=StemConfig("resnet", layers=(1, 1), width=8))
"""For the eps of the reference code."""


@check(PADDING)
def same_padding(function: Callable[[Tensor, int, int], Tensor]) -> None:
    """Check a function ``(images, kernel, stride)`` that pads (B, C, H, W) with zeros as the reference code.

    Raises:
        CheckFailed: if it differs; the message names symmetric padding, and the extra row on the wrong side.
    """
    cases = []
    for height, width, kernel, stride in [
        (8, 8, 3, 2),
        (14, 9, 7, 2),
        (7, 7, 3, 1),
        (9, 6, 1, 2),
        (7, 8, 5, 3),
    ]:
        images = torch.randn(2, 3, height, width)
        right = ours.same_padding(images, kernel, stride)
        before = ours.same_padding(images.flip(2, 3), kernel, stride).flip(2, 3)
        mistakes = {
            "it pads both sides alike; SAME pads as little as it can, and puts the odd row and column "
            "after the image": F.pad(images, [(kernel - 1) // 2] * 4),
            "it pads as for stride 1; with a larger stride SAME needs less": ours.same_padding(
                images, kernel, 1
            ),
            "it pads kernel // 2 on each side; SAME pads as little as it can": F.pad(
                images, [kernel // 2] * 4
            ),
            "it does not pad": images,
            "the odd row and column stand before the image; SAME puts them after it": before,
            "rows and columns are swapped": ours.same_padding(images.mT, kernel, stride).mT,
            "it repeats the border; SAME pads with zeros": F.pad(
                images, _amounts(images, right), mode="replicate"
            ),
            "all of the padding stands after the image; SAME splits it": F.pad(
                images, (0, right.shape[3] - width, 0, right.shape[2] - height)
            ),
        }
        label = f"images of shape {tuple(images.shape)}, kernel {kernel}, stride {stride}"
        cases.append(Case((images, kernel, stride), right, mistakes, label))
    judge_function(PADDING, function, ours.same_padding, cases, [ours.same_padding])


def _amounts(images: Tensor, padded: Tensor) -> list[int]:
    """Return how much SAME pads: left, right, top, bottom."""
    rows, columns = (new - old for new, old in zip(padded.shape[2:], images.shape[2:], strict=True))
    return [columns // 2, columns - columns // 2, rows // 2, rows - rows // 2]


@check(CONVOLUTION)
def standardised_conv(cls: Callable[[int, int, int, int], object]) -> None:
    """Check a class like :class:`vit_from_scratch.model.hybrid.StandardisedConv`.

    It is called as ``cls(channels, features, kernel, stride)``; one parameter, ``weight``.

    Raises:
        CheckFailed: if parameters or results differ; the message names a well-known mistake.
    """
    reference = ours.conv(CONFIG, 3, 6, 3, 2)
    randomise(reference)
    with torch.no_grad():
        reference.weight.mul_(1e-3)  # small filters, so that the eps and where it goes can be seen
    weight = reference.weight

    def cases() -> list[Case]:
        found = []
        for side in (8, 7):
            images = torch.randn(2, 3, side, side)
            padded = ours.same_padding(images, 3, 2)

            def convolved(filters: Tensor, padded: Tensor = padded) -> Tensor:
                return F.conv2d(padded, filters, stride=2)

            standardised = reference.standardised()
            mistakes = {
                "the filters are used as they are; standardise them each time": convolved(weight),
                **{
                    sentence: convolved(filters)
                    for sentence, filters in wrong_filters(weight, reference.eps).items()
                },
                "the padding is the same on both sides; the reference code pads as SAME (see same_padding)": (
                    F.conv2d(images, standardised, stride=2, padding=1)
                ),
                "the images are not padded": F.conv2d(images, standardised, stride=2),
                "the stride is 1": F.conv2d(ours.same_padding(images, 3, 1), standardised),
            }
            label = f"images of shape {tuple(images.shape)}, kernel 3, stride 2"
            found.append(Case((images,), reference(images), mistakes, label))
        return found

    judge_module(CONVOLUTION, cls, (3, 6, 3, 2), reference, cases)


@check(BOTTLENECK)
def bottleneck(cls: Callable[[int, int, int], object]) -> None:
    """Check a class like :class:`vit_from_scratch.model.hybrid.Bottleneck`.

    It is called as ``cls(channels, width, stride)``; submodules ``conv1`` to ``conv3``, ``norm1`` to
    ``norm3``, ``shortcut`` and ``shortcut_norm``, the last two `nn.Identity()` where nothing changes.

    Raises:
        CheckFailed: if parameters or results differ, or a new unit's last norm has a scale other than 0; the
            message names a well-known mistake.
    """
    for channels, stride in [(32, 1), (16, 2)]:
        reference = ours.Bottleneck(CONFIG, channels, 8, stride)
        randomise(reference)

        def cases(reference: ours.Bottleneck = reference, channels: int = channels) -> list[Case]:
            features = torch.randn(2, channels, 6, 6)
            label = f"features of shape {tuple(features.shape)}"
            return [Case((features,), reference(features), _bottleneck_mistakes(reference, features), label)]

        def started(module: nn.Module) -> None:
            starts_at_zero(BOTTLENECK, module, ["norm3.weight"], "a new unit hands on what it got")

        judge_module(BOTTLENECK, cls, (channels, 8, stride), reference, cases, started)


def _bottleneck_mistakes(reference: ours.Bottleneck, features: Tensor) -> dict[str, Tensor]:
    """What each wrong wiring of the layers gives."""
    first, second, third = reference.conv1, reference.conv2, reference.conv3
    norm_1, norm_2, norm_3 = reference.norm1, reference.norm2, reference.norm3
    start = F.relu(norm_1(first(features)))
    inner = norm_3(third(F.relu(norm_2(second(start)))))
    past = reference.shortcut(features)
    short = reference.shortcut_norm(past)
    linear_1 = norm_3(third(F.relu(norm_2(second(norm_1(first(features)))))))
    linear_2 = norm_3(third(norm_2(second(start))))
    return {
        "the last ReLU is missing; it follows the sum": short + inner,
        "the last ReLU stands before the sum; it follows it": short + F.relu(inner),
        "there is a ReLU before the sum as well": F.relu(short + F.relu(inner)),
        "the input is not added": F.relu(inner),
        "the norm of the shortcut is missing": F.relu(past + inner),
        "the first ReLU is missing": F.relu(short + linear_1),
        "the second ReLU is missing": F.relu(short + linear_2),
        "the last norm is missing": F.relu(short + third(F.relu(norm_2(second(start))))),
        "a ReLU follows the shortcut": F.relu(F.relu(short) + inner),
        "a GELU stands in place of the last ReLU": F.gelu(short + inner),
    }


@check(STEM)
def resnet_stem(cls: Callable[[tuple[int, ...], int, int], object]) -> None:
    """Check a class like :class:`vit_from_scratch.model.hybrid.ResNetStem`.

    It is called as ``cls(layers, width, dim)``; submodules ``root``, ``root_norm``, ``stages`` (a list of
    `nn.Sequential`, one a stage) and ``projection``, a linear layer.

    Raises:
        CheckFailed: if parameters or results differ; the message names a stage or pool that is out of step.
    """
    layers, width, dim = (2, 1), 8, 12
    stem = StemConfig("resnet", layers=layers, width=width)
    reference = ours.ResNetStem(ViTConfig(32, 8, dim=dim, heads=2, stem=stem))
    randomise(reference)

    def cases() -> list[Case]:
        found = []
        for shape in ((2, 3, 24, 40), (1, 3, 32, 16)):
            images = torch.randn(shape)
            label = f"images of shape {shape}, stages {layers}"
            found.append(Case((images,), reference(images), _stem_mistakes(reference, images), label))
        return found

    judge_module(STEM, cls, (layers, width, dim), reference, cases)


def _stem_mistakes(reference: ours.ResNetStem, images: Tensor) -> dict[str, Tensor]:
    """What each wrong order, pool or stride gives."""
    normed = reference.root_norm(reference.root(images))
    root = F.relu(normed)
    padded = ours.same_padding(root, 3, 2)

    def staged(features: Tensor, stem: ours.ResNetStem = reference) -> Tensor:
        for stage in stem.stages:
            features = stage(features)
        return features

    def stem_with(stage: int, stride: int) -> ours.ResNetStem:
        """The same weights, with another stride in the first unit of a stage."""
        other = copy.deepcopy(reference)
        unit = other.get_submodule(f"stages.{stage}.0")
        for name in ("conv2", "shortcut"):
            setattr(unit.get_submodule(name), "stride", (stride, stride))  # noqa: B010 - typed as a module
        return other

    def tokens(features: Tensor, order: str = "gh gw") -> Tensor:
        return reference.projection(rearrange(features, f"b c gh gw -> b ({order}) c"))

    features = staged(F.max_pool2d(padded, 3, 2))
    batch, channels = features.shape[:2]
    return {
        "the max pool after the root is missing": tokens(staged(root)),
        "the max pool is padded on both sides alike; pad as SAME": tokens(
            staged(F.max_pool2d(root, 3, 2, 1))
        ),
        "the max pool is not padded; pad as SAME": tokens(staged(F.max_pool2d(root, 3, 2))),
        "the max pool looks at 2 x 2 places; it looks at 3 x 3": tokens(staged(F.max_pool2d(root, 2, 2))),
        "a mean stands in place of the max pool": tokens(staged(F.avg_pool2d(padded, 3, 2))),
        "the ReLU after the root is missing": tokens(
            staged(F.max_pool2d(ours.same_padding(normed, 3, 2), 3, 2))
        ),
        "the norm after the root is missing": tokens(
            staged(F.max_pool2d(ours.same_padding(F.relu(reference.root(images)), 3, 2), 3, 2))
        ),
        "the first stage halves the map as well; the pool has done so, and it keeps the size": tokens(
            staged(F.max_pool2d(padded, 3, 2), stem_with(0, 2))
        ),
        "a later stage does not halve the map; its first unit has a stride of 2": tokens(
            staged(F.max_pool2d(padded, 3, 2), stem_with(1, 1))
        ),
        "the places come column by column; they come row by row, as patches do": tokens(features, "gw gh"),
        "the projection to width D is missing": rearrange(features, "b c gh gw -> b (gh gw) c"),
        "the map is reshaped without moving its channels to the end; (B, C', gh, gw) has to become "
        "(B, gh, gw, C') first": reference.projection(features.reshape(batch, -1, channels)),
    }
