"""What a training run is made of: `TrainConfig`, every switch of the loop in one frozen dataclass."""

from dataclasses import dataclass, field
from typing import Literal

from vit_from_scratch.data.augmentation import Augmentation
from vit_from_scratch.settings import Range, check_fields, require
from vit_from_scratch.training.schedules import Decay

RANGES: tuple[Range, ...] = (
    ("epochs batch_size accumulation", lambda count: count >= 1, "at least 1"),
    ("threads", lambda count: count <= 1024, "at most 1024"),
    ("batch_size", lambda count: count <= 2**31, f"at most {2**31}"),
    ("seed steps warmup_steps patience workers threads", lambda count: count >= 0, "0 or more"),
    ("weight_decay clip_norm adamw_learning_rate", lambda number: number >= 0, "0 or more"),
    ("learning_rate", lambda rate: rate > 0, "a number above 0"),
    ("layer_decay", lambda share: 0 < share <= 1, "above 0, at most 1"),
    ("momentum label_smoothing average_decay", lambda share: 0 <= share < 1, "0 or more, below 1"),
    ("betas", lambda betas: all(0 <= beta < 1 for beta in betas), "two numbers from 0 to below 1"),
    ("mix_until augment_until", lambda share: 0 <= share <= 1, "a share of the run, 0 to 1"),
    ("curriculum", lambda stages: all(side >= 1 for _, side in stages), "sides of 1 or more"),
)
"""What the settings may be, each for itself."""


@dataclass(frozen=True, kw_only=True)
class TrainConfig:
    """Every switch of the training loop. Change one with `dataclasses.replace`.

    Attributes:
        epochs: passes over the training images.
        steps: steps of the whole run, which then ends inside an epoch; 0 to let `epochs` decide.
        batch_size: images in a step, B. The last images of an epoch that fill no batch are not seen in it.
        seed: fixes order, augmentation and dropout (and, in `vit train`, the initial weights).
        optimiser: "adamw" (decoupled weight decay), "adam" (weight decay as an L2 penalty), "sgd" or
            "muon" (Muon for the matrices of the blocks, AdamW for the rest).
        learning_rate: the base rate, which the schedule multiplies; with "muon" that of Muon.
        adamw_learning_rate: with "muon", the base rate of the AdamW beside it; 0 for a third of Muon's, so
            that a sweep of rates moves both.
        layer_decay: share of a block's rate that the block below it gets; 1 for the same rate everywhere, the
            only choice with "muon". Fine-tuning with AdamW often takes 0.65 to 0.8.
        weight_decay: for weight matrices; biases, norms, class token and position embedding have none.
        momentum: of SGD and of Muon.
        betas: of Adam and AdamW; the paper's are 0.9 and 0.999.
        schedule: the decay after the warm-up: "cosine", "linear" or "constant".
        warmup_steps: steps of linear warm-up; the paper pre-trains with 10,000.
        clip_norm: the gradient's largest global norm; 0 turns clipping off. The paper takes 1 for
            pre-training on ImageNet and for fine-tuning.
        label_smoothing: share of the target that is spread over all classes.
        augmentation: random changes to the training images.
        curriculum: the image-size curriculum: pairs of a share of the run and the side, in pixels, that
            images are shrunk to from there on, such as [[0.0, 16], [0.5, 32]]; empty for the full size.
        mix_until: share of the run after which images are no longer mixed (mixup, cutmix), so that the run
            ends on images as they are; 1 to mix to the end.
        augment_until: share of the run from which, as the next epoch begins, images are no longer cropped and
            nothing is erased, so that the run ends on whole images; 1 for never.
        average_decay: decay per step, such as 0.999, of a moving average of the weights, which is measured
            and kept in place of the last weights; 0 for none. The paper's Polyak averaging has 0.9999.
        patience: epochs without a lower validation loss after which the run stops early and goes back to the
            best weights, counted in the last stage of a curriculum; 0 to train to the end.
        accumulation: pieces that a batch is cut into, one after another, so that a large batch fits into a
            small memory; the gradient is that of the whole batch, except that batch norm (in a convolutional
            stem) sees each piece for itself.
        precision: "float32", or "bfloat16" for autocast.
        compile: fuse the model's operations with torch.compile; the first steps then take a minute. On a CPU
            without a C++ compiler a sentence says so, and the model is trained as it is.
        workers: processes that read and change images of a data set that is not in memory; 0 for none.
        sharding: what each of several processes holds: "none" for a whole model (DistributedDataParallel);
            "full" for a part of weights, gradients and optimiser state (FSDP2), where one device is too small
            for all of it. One process holds everything either way.
        threads: CPU threads; 0 leaves the choice to torch. A model of the digits' size is as fast on one, is
            not held up by other programs there, and rounds alike on any number of cores.

    Raises:
        InputError: a value out of its range or of another type.
    """

    epochs: int = 20
    steps: int = 0
    batch_size: int = 64
    seed: int = 0
    optimiser: Literal["adamw", "adam", "sgd", "muon"] = "adamw"
    learning_rate: float = 1e-3
    adamw_learning_rate: float = 2e-3
    layer_decay: float = 1.0
    weight_decay: float = 0.05
    momentum: float = 0.9
    betas: tuple[float, float] = (0.9, 0.999)
    schedule: Decay = "cosine"
    warmup_steps: int = 50
    clip_norm: float = 1.0
    label_smoothing: float = 0.0
    augmentation: Augmentation = field(default_factory=Augmentation)
    curriculum: tuple[tuple[float, int], ...] = ()
    mix_until: float = 1.0
    augment_until: float = 1.0
    average_decay: float = 0.0
    patience: int = 0
    accumulation: int = 1
    precision: Literal["float32", "bfloat16"] = "float32"
    compile: bool = False
    workers: int = 2
    sharding: Literal["none", "full"] = "none"
    threads: int = 0

    def __post_init__(self) -> None:
        """Refuse what cannot be trained with."""
        check_fields(self, "train", RANGES)
        alike = self.optimiser != "muon" or self.layer_decay == 1
        require(alike, "train.layer_decay", self.layer_decay, '1 with optimiser = "muon"')
        starts = [share for share, _ in self.curriculum]
        grows = not starts or (starts[0] == 0 and starts == sorted(set(starts)) and starts[-1] < 1)
        expected = "shares of the run that begin at 0 and grow, below 1"
        require(grows, "train.curriculum", self.curriculum, expected)
