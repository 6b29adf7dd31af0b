"""Part II, train it: data, augmentation, schedules, optimisers, and one loop."""

from vit_from_scratch.normalisation import Normalisation
from vit_from_scratch.training.augmentation import PRESETS, Augmentation, augment
from vit_from_scratch.training.callbacks import Callback, ProgressBar, StepLog
from vit_from_scratch.training.config import TrainConfig
from vit_from_scratch.training.data import DataConfig, ImageData, load_dataset, open_dataset
from vit_from_scratch.training.evaluation import Evaluation, evaluate, evaluate_batches, predict
from vit_from_scratch.training.guards import DivergedError
from vit_from_scratch.training.loop import train
from vit_from_scratch.training.optimisers import build_optimiser, decay_groups
from vit_from_scratch.training.schedules import schedule_factor
from vit_from_scratch.training.state import EpochMetrics
from vit_from_scratch.training.streaming import PhotoData

__all__ = [
    "PRESETS",
    "Augmentation",
    "Callback",
    "DataConfig",
    "DivergedError",
    "EpochMetrics",
    "Evaluation",
    "ImageData",
    "Normalisation",
    "PhotoData",
    "ProgressBar",
    "StepLog",
    "TrainConfig",
    "augment",
    "build_optimiser",
    "decay_groups",
    "evaluate",
    "evaluate_batches",
    "load_dataset",
    "open_dataset",
    "predict",
    "schedule_factor",
    "train",
]
