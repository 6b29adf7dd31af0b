"""What a training run is made of: `TrainConfig`, every switch of the loop in one frozen dataclass."""

from dataclasses import dataclass, field
from typing import Literal

from vit_from_scratch.settings import check_fields, require
from vit_from_scratch.training.augmentation import Augmentation
from vit_from_scratch.training.schedules import Decay


@dataclass(frozen=True, kw_only=True)
class TrainConfig:
    """Every switch of the training loop. Change one with `dataclasses.replace`.

    Attributes:
        epochs: passes over the training images.
        batch_size: images in a step, B. The last images of an epoch that fill no batch are left for the next.
        seed: fixes order, augmentation and dropout (and, in `vit train`, the initial weights).
        optimiser: "adamw" (decoupled weight decay), "adam" (weight decay as an L2 penalty) or "sgd".
        learning_rate: the base rate, which the schedule multiplies.
        weight_decay: for weight matrices; biases, norms, class token and position embedding have none.
        momentum: of SGD.
        betas: of Adam and AdamW; the paper's are 0.9 and 0.999.
        schedule: the decay after the warm-up: "cosine", "linear" or "constant".
        warmup_steps: steps of linear warm-up; the paper takes 10,000 of a million.
        clip_norm: the gradient's largest global norm; 0 turns clipping off. The paper takes 1.
        label_smoothing: share of the target that is spread over all classes.
        augmentation: random changes to the training images.
        precision: "float32", or "bfloat16" for autocast.
        threads: CPU threads; 0 leaves the choice to torch. A model of the digits' size is as fast on one, is
            not held up by other programs there, and rounds alike on any number of cores.

    Raises:
        InputError: a value out of its range or of another type.
    """

    epochs: int = 20
    batch_size: int = 64
    seed: int = 0
    optimiser: Literal["adamw", "adam", "sgd"] = "adamw"
    learning_rate: float = 1e-3
    weight_decay: float = 0.05
    momentum: float = 0.9
    betas: tuple[float, float] = (0.9, 0.999)
    schedule: Decay = "cosine"
    warmup_steps: int = 50
    clip_norm: float = 1.0
    label_smoothing: float = 0.0
    augmentation: Augmentation = field(default_factory=Augmentation)
    precision: Literal["float32", "bfloat16"] = "float32"
    threads: int = 0

    def __post_init__(self) -> None:
        """Refuse what cannot be trained with."""
        check_fields(self, "train")
        for name in ("epochs", "batch_size"):
            require(getattr(self, name) >= 1, f"train.{name}", getattr(self, name), "at least 1")
        for name in ("seed", "weight_decay", "warmup_steps", "clip_norm", "threads"):
            require(getattr(self, name) >= 0, f"train.{name}", getattr(self, name), "0 or more")
        require(self.learning_rate > 0, "train.learning_rate", self.learning_rate, "a number above 0")
        for name in ("momentum", "label_smoothing"):
            require(0 <= getattr(self, name) < 1, f"train.{name}", getattr(self, name), "0 or more, below 1")
        require(
            all(0 <= b < 1 for b in self.betas), "train.betas", self.betas, "two numbers from 0 to below 1"
        )
