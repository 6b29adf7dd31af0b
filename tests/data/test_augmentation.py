from dataclasses import replace

import pytest
import torch
from torchvision.transforms import v2
from torchvision.transforms.v2 import functional as F

from vit_from_scratch import InputError
from vit_from_scratch.data.augmentation import Augmentation
from vit_from_scratch.data.random_changes import _random_affine, augment, blend


def generator(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def random_affine(images, amounts, generator):
    return _random_affine(images, amounts, generator, len(images))


@pytest.fixture
def images():
    return torch.randint(256, (64, 3, 6, 10), dtype=torch.uint8, generator=generator())


def test_no_amounts_change_no_pixel(images):
    assert torch.equal(augment(images, Augmentation(), generator()), images.float())


def test_flip_mirrors_about_half_of_the_images_exactly(images):
    changed = augment(images, Augmentation(flip=True), generator())
    mirrored = [
        torch.allclose(c, i.flip(-1).float(), atol=1e-3) for c, i in zip(changed, images, strict=True)
    ]
    kept = [torch.allclose(c, i.float(), atol=1e-3) for c, i in zip(changed, images, strict=True)]
    assert all(m != k for m, k in zip(mirrored, kept, strict=True))
    assert 20 < sum(mirrored) < 44


def test_shift_moves_by_whole_pixels_and_brings_in_black(images):
    changed = augment(images, Augmentation(shift=2), generator())
    padded = torch.nn.functional.pad(images.float(), (2, 2, 2, 2))
    moves = set()
    for new, old in zip(changed, padded, strict=True):
        fits = [
            (dy, dx)
            for dy in range(5)
            for dx in range(5)
            if torch.allclose(new, old[:, dy : dy + 6, dx : dx + 10], atol=1e-2)
        ]
        assert len(fits) == 1
        moves.add(fits[0])
    assert {dy for dy, _ in moves} == {dx for _, dx in moves} == {0, 1, 2, 3, 4}


def test_jitter_moves_by_less_than_its_bound():
    dot = torch.zeros(200, 1, 9, 9)
    dot[:, :, 4, 4] = 1.0
    changed = augment(dot, Augmentation(jitter=0.5), generator())
    assert torch.allclose(changed.sum(dim=(1, 2, 3)), torch.ones(200), atol=1e-4)
    place = (changed * torch.arange(9.0)).sum(dim=(1, 2, 3)) - 4  # (200,) pixels to the right
    assert 0.4 < place.abs().max() <= 0.5


def test_rotation_keeps_angles_and_lengths_in_pictures_that_are_not_square():
    amounts = Augmentation(rotation=40.0)
    matrix = random_affine(torch.zeros(16, 1, 6, 10), amounts, generator())[:, :, :2]
    half_sides = torch.diag(torch.tensor([5.0, 3.0]))
    in_pixels = half_sides @ matrix @ half_sides.inverse()
    assert torch.allclose(in_pixels @ in_pixels.mT, torch.eye(2).expand(16, 2, 2), atol=1e-6)
    degrees = torch.rad2deg(torch.atan2(in_pixels[:, 1, 0], in_pixels[:, 0, 0]))
    assert 20 < degrees.abs().max() <= 40


def test_scale_enlarges_and_shrinks_within_its_bound():
    matrix = random_affine(torch.zeros(200, 1, 8, 8), Augmentation(scale=0.2), generator())
    enlarged = 1 / matrix[:, 0, 0]
    assert 0.8 <= enlarged.min() < 0.85
    assert 1.15 < enlarged.max() <= 1.2
    assert torch.equal(matrix[:, 0, 0], matrix[:, 1, 1])


def test_shear_moves_a_row_by_its_height():
    matrix = random_affine(torch.zeros(200, 1, 8, 8), Augmentation(shear=0.3), generator())
    assert 0.25 < matrix[:, 0, 1].abs().max() <= 0.3
    assert not matrix[:, 1, 0].any()


@pytest.mark.parametrize("shear", [0.0, 0.8])
def test_a_mirrored_sheared_and_turned_picture_keeps_its_area(shear):
    amounts = Augmentation(flip=True, rotation=180.0, shear=shear)
    matrix = random_affine(torch.zeros(200, 1, 6, 10), amounts, generator())[:, :, :2]
    half_sides = torch.diag(torch.tensor([5.0, 3.0]))
    in_pixels = half_sides @ matrix @ half_sides.inverse()
    areas = torch.linalg.det(in_pixels)
    assert torch.allclose(areas.abs(), torch.ones(200), atol=1e-5)
    assert {round(area) for area in areas.tolist()} == {-1, 1}, "half of them are mirrored"
    stretched = torch.linalg.svdvals(in_pixels)[:, 0]  # of a shear by s: (s + sqrt(s^2 + 4)) / 2 at most
    assert stretched.max() <= (shear + (shear**2 + 4) ** 0.5) / 2 + 1e-5


def test_reflection_fills_a_border_with_the_picture():
    grey = torch.full((8, 1, 6, 6), 7.0)
    assert torch.allclose(augment(grey, Augmentation(shift=2, fill="reflection"), generator()), grey)
    assert (augment(grey, Augmentation(shift=2), generator()) == 0).any()


def test_the_generator_alone_decides(images):
    amounts = Augmentation(flip=True, shift=1, jitter=0.5, rotation=10.0, scale=0.1, shear=0.1)
    first = augment(images, amounts, generator(1))
    torch.manual_seed(123)
    assert torch.equal(first, augment(images, amounts, generator(1)))
    assert not torch.equal(first, augment(images, amounts, generator(2)))


@pytest.mark.parametrize(
    ("amounts", "message"),
    [
        ({"shift": -1}, r"train\.augmentation\.shift = -1: expected 0 or more"),
        ({"rotation": 200}, r"rotation = 200\.0: expected 0 to 180 degrees"),
        ({"mix_probability": 1.5}, r"train\.augmentation\.mix_probability = 1\.5: expected 0 to 1"),
        ({"scale": 1.5}, r"scale = 1\.5: expected 0 or more, below 1"),
        ({"fill": "zero"}, r"fill 'zero'.*did you mean 'zeros'"),
        ({"shift": 0.5}, r"shift = 0\.5: expected a whole number"),
    ],
)
def test_amounts_that_make_no_sense_are_refused(amounts, message):
    with pytest.raises(InputError, match=message):
        Augmentation(**amounts)


def test_a_crop_keeps_a_share_of_the_area_inside_the_image():
    amounts = Augmentation(crop=(0.3, 0.6))
    matrix = random_affine(torch.zeros(500, 1, 8, 8), amounts, generator())
    width, height = matrix[:, 0, 0], matrix[:, 1, 1]
    area, ratio = width * height, width / height
    assert 0.3 <= area.min() < 0.35
    assert 0.55 < area.max() <= 0.6
    assert 0.75 - 1e-6 <= ratio.min() < ratio.max() <= 4 / 3 + 1e-6
    assert ((matrix[:, :, 2].abs() + torch.stack([width, height], 1)) <= 1 + 1e-6).all()


def test_erasing_blanks_what_lies_around_a_place_of_its_own_in_each_image():
    changed = augment(torch.zeros(32, 3, 20, 10), Augmentation(erase=0.3), generator())
    drawn = generator()
    middles = [side * torch.rand(32, 1, generator=drawn)[:, 0] for side in (20, 10)]
    for image, row, column in zip(changed, *middles, strict=True):
        blank = [
            [abs(y + 0.5 - row) <= 3 and abs(x + 0.5 - column) <= 1.5 for x in range(10)] for y in range(20)
        ]
        assert torch.equal(image, 127.5 * torch.tensor(blank).expand(3, 20, 10))


@pytest.mark.parametrize("options", [{"mixup": 0.5}, {"cutmix": 1.0}, {"mixup": 0.5, "cutmix": 1.0}])
def test_blending_mixes_labels_as_it_mixes_images(options):
    """With images that show their class number, the mean of the pixels is the mean of the labels."""
    torch.manual_seed(0)
    labels = torch.arange(10)
    images = labels.float()[:, None, None, None].expand(10, 3, 16, 16).clone()
    for _ in range(20):
        mixed, shares = blend(images, labels, Augmentation(**options), 10)
        assert torch.allclose(shares.sum(dim=1), torch.ones(10), atol=1e-5)
        assert torch.allclose(mixed.mean(dim=(1, 2, 3)), shares @ labels.float(), atol=1e-3)


@pytest.mark.parametrize("alpha", [0.2, 5.0])
@pytest.mark.parametrize("kind", ["mixup", "cutmix"])
def test_blending_is_torchvisions(kind, alpha):
    images, labels = torch.rand(8, 3, 8, 8), torch.arange(8)
    torch.manual_seed(1)
    found = blend(images, labels, Augmentation(**{kind: alpha}), 10)
    torch.manual_seed(1)
    torch.randint(1, ())  # which kind
    transform = {"mixup": v2.MixUp, "cutmix": v2.CutMix}[kind](alpha=alpha, num_classes=10)
    for ours, theirs in zip(found, transform(images, labels), strict=True):
        assert torch.equal(ours, theirs)


def test_of_two_kinds_of_blending_each_comes_at_times():
    """A mixture of two images of one tone each has one tone; a piece of one in the other has two."""
    torch.manual_seed(0)
    images, labels = torch.arange(10.0)[:, None, None, None].expand(10, 3, 16, 16), torch.arange(10)
    both = Augmentation(mixup=1.0, cutmix=1.0)
    flat = [blend(images, labels, both, 10)[0].std(dim=(2, 3)).max() < 1e-5 for _ in range(200)]
    assert 60 < sum(flat) < 140


def test_a_share_of_the_batches_is_mixed(images):
    torch.manual_seed(0)
    images, labels = images.float(), torch.arange(64) % 10
    at_times = Augmentation(cutmix=1.0, mixup=0.5, mix_probability=0.3)
    mixed = sum(blend(images, labels, at_times, 10)[1].ndim == 2 for _ in range(400))
    assert abs(mixed - 120) < 4 * (400 * 0.3 * 0.7) ** 0.5
    never = replace(at_times, mix_probability=0.0)
    assert all(blend(images, labels, never, 10)[0] is images for _ in range(50))


def test_without_blending_labels_stay_numbers(images):
    labels = torch.arange(64) % 10
    same, numbers = blend(images, labels, Augmentation(), 10)
    assert same is images
    assert numbers is labels


def test_presets_have_names():
    assert Augmentation.named("poster") == Augmentation(flip=True, crop=(0.8, 1.0))
    with pytest.raises(InputError, match=r"unknown train\.augmentation 'postr': .*did you mean 'poster'"):
        Augmentation.named("postr")


@pytest.mark.parametrize("crop", [(0.9, 1.0), (0.08, 1.0)])
@pytest.mark.parametrize(("height", "width"), [(200, 200), (150, 300)])
def test_crops_are_distributed_as_those_of_torchvision(crop, height, width):
    """Areas, ratios and places: the quantiles of 20,000 crops against those of 2,000 of torchvision's."""
    small = torch.zeros(1, 1, height // 50, width // 50).expand(20_000, -1, -1, -1)
    matrix = random_affine(small, Augmentation(crop=crop), generator())
    across, down = matrix[:, 0, 0], matrix[:, 1, 1]
    left, top = (1 - across + matrix[:, 0, 2]) / 2, (1 - down + matrix[:, 1, 2]) / 2
    room = torch.stack([left / (1 - across).clamp(min=1e-6), top / (1 - down).clamp(min=1e-6)])
    inside = (across < 0.99) & (down < 0.99)
    if inside.any():  # not where every crop is cut to the middle
        assert torch.corrcoef(room[:, inside])[0, 1].abs() < 0.05, "drawn apart"
    theirs = v2.RandomResizedCrop(8, scale=crop)
    torch.manual_seed(0)
    image = [torch.empty(3, height, width)]
    boxes = [theirs.make_params(image) for _ in range(2_000)]
    box = {key: torch.tensor([float(b[key]) for b in boxes]) for key in boxes[0]}
    shares = torch.tensor([0.02, 0.1, 0.3, 0.5, 0.7, 0.9, 0.98])
    for ours, other in (
        (across * down, box["width"] * box["height"] / (height * width)),
        (across / down * width / height, box["width"] / box["height"]),
        (left, box["left"] / width),
        (top, box["top"] / height),
    ):
        assert torch.allclose(torch.quantile(ours, shares), torch.quantile(other, shares), atol=0.04)


def test_changes_without_a_crop_draw_what_they_always_drew():
    before = [-0.99999928, -0.00117603, 0.0, -0.00117603, 0.99999928, -0.25]
    matrix = random_affine(torch.zeros(2, 1, 8, 8), Augmentation(flip=True, shift=2, rotation=9), generator())
    assert matrix[0].flatten().tolist() == pytest.approx(before, abs=1e-6)


@pytest.mark.parametrize("change", range(3))
def test_each_image_gets_a_change_of_colour_that_torchvision_knows(images, change):
    adjust = (F.adjust_brightness, F.adjust_contrast, F.adjust_saturation)[change]
    most = [0.0] * 4
    most[change] = 0.6
    changed = augment(images, Augmentation(colour_jitter=tuple(most)), generator(1))
    drawn = generator(1)
    factors = [0.4 + 1.2 * torch.rand(len(images), generator=drawn) for _ in range(3)][change]
    assert factors.max() - factors.min() > 1
    for new, old, factor in zip(changed, images, factors.tolist(), strict=True):
        assert torch.allclose(new / 255, adjust(old / 255, factor), atol=1e-4)


def test_grey_images_change_in_brightness_and_contrast_alone():
    grey = torch.rand(8, 1, 6, 6, generator=generator()) * 255
    changed = [
        (augment(grey, Augmentation(colour_jitter=most), generator()) - grey).abs().max()
        for most in [(0.9, 0.0, 0.0, 0.0), (0.0, 0.9, 0.0, 0.0), (0.0, 0.0, 0.9, 0.0)]
    ]
    assert changed[0] > 10
    assert changed[1] > 10
    assert changed[2] < 1e-3
