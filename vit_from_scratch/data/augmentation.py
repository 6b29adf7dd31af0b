"""How far training images are changed: `Augmentation`, and its presets by name; no PyTorch needed."""

from dataclasses import dataclass
from typing import Literal

from vit_from_scratch.errors import unknown_name
from vit_from_scratch.settings import Range, check_fields

RANGES: tuple[Range, ...] = (
    ("shift jitter shear", lambda most: most >= 0, "0 or more"),
    ("rotation", lambda most: 0 <= most <= 180, "0 to 180 degrees"),
    ("scale erase", lambda most: 0 <= most < 1, "0 or more, below 1"),
    # outside this, float32 samples no longer follow Beta
    ("mixup cutmix", lambda alpha: alpha == 0 or 0.01 <= alpha <= 1000, "0, or 0.01 to 1000"),
    ("mix_probability", lambda share: 0 <= share <= 1, "0 to 1"),
    ("crop", lambda areas: 0 < areas[0] <= areas[1] <= 1, "two shares, 0 < low <= high <= 1"),
    ("colour_jitter", lambda of: min(of) >= 0 and of[3] <= 0.5, "four numbers >= 0, the last at most 0.5"),
    ("rand_augment", lambda of: of[0] >= 0 and 0 <= of[1] <= 30, "a number and a strength of 0 to 30"),
)
"""What the amounts may be."""


@dataclass(frozen=True, kw_only=True)
class Augmentation:
    """How far training images are changed; all zero, the default, changes nothing.

    Attributes:
        flip: mirror left to right with probability one half (natural images, not digits).
        shift: move by up to this many whole pixels along each axis.
        jitter: move by up to this many pixels, fractions included; in between, pixels are interpolated.
        rotation: turn by up to this many degrees either way.
        scale: enlarge or shrink by up to this share, 0.1 for 90 % to 110 %.
        shear: slant by up to this much, pixels to the side for each pixel up or down.
        crop: cut out a rectangle with a share of the area between these two and sides in a ratio between 3:4
            and 4:3, and enlarge it to the whole (random resized crop); (1, 1) for none.
        erase: blank a square with this share of the image's side, somewhere (cutout).
        mixup: alpha of mixup: images and labels of a batch are blended in pairs, by a share from
            Beta(alpha, alpha); 0 for none (Zhang et al., 2018).
        cutmix: alpha of cutmix: a rectangle of one image is pasted into another; with mixup too, each batch
            gets one of the two (Yun et al., 2019).
        mix_probability: of a batch to be mixed at all, where mixup or cutmix is on.
        colour_jitter: the most by which brightness, contrast, saturation and hue change; the hue of streamed
            data only.
        rand_augment: how many random operations an image gets, and their strength, 0 to 30; (0, 0) for none;
            streamed data only (Cubuk et al., 2020).
        fill: what comes in at the border: "zeros" (black) or "reflection".

    Raises:
        InputError: a value out of its range or of another type.
    """

    flip: bool = False
    shift: int = 0
    jitter: float = 0.0
    rotation: float = 0.0
    scale: float = 0.0
    shear: float = 0.0
    crop: tuple[float, float] = (1.0, 1.0)
    erase: float = 0.0
    mixup: float = 0.0
    cutmix: float = 0.0
    mix_probability: float = 1.0
    colour_jitter: tuple[float, float, float, float] = (0.0, 0.0, 0.0, 0.0)
    rand_augment: tuple[int, int] = (0, 0)
    fill: Literal["zeros", "reflection"] = "zeros"

    def __post_init__(self) -> None:
        """Refuse amounts that make no sense."""
        check_fields(self, "train.augmentation", RANGES)

    @classmethod
    def named(cls, name: str) -> "Augmentation":
        """Return one of `PRESETS`; an `InputError` for an unknown name."""
        if name not in PRESETS:
            raise unknown_name("train.augmentation", name, PRESETS)
        return PRESETS[name]

    @property
    def moves(self) -> bool:
        """Whether a pixel may come from another place."""
        amounts = (self.flip, self.shift, self.jitter, self.rotation, self.scale, self.shear)
        return any(amounts) or self.crop != (1.0, 1.0)

    @property
    def alone(self) -> tuple[str, ...]:
        """The names of the changes asked for that only streamed photos can have, one at a time."""
        asked = {"colour_jitter[3]": self.colour_jitter[3], "rand_augment": self.rand_augment[0]}
        return tuple(name for name in asked if asked[name])


PRESETS = {
    "none": Augmentation(),
    "cifar": Augmentation(flip=True, shift=4, fill="reflection"),
    "poster": Augmentation(flip=True, crop=(0.8, 1.0)),
    "imagenette-writeup": Augmentation(flip=True, crop=(0.6, 1.0), colour_jitter=(0.4, 0.4, 0.4, 0.1)),
    "imagenet": Augmentation(flip=True, crop=(0.08, 1.0), rand_augment=(2, 9)),
}
"""Augmentations by name: `augmentation = "poster"` in a recipe. Two are a poster's and a write-up's."""
