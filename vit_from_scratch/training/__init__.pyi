from .callbacks import StepLog
from .config import TrainConfig
from .evaluation import Evaluation, evaluate, evaluate_batches, evaluate_hidden, predict
from .loop import train
from .masked_autoencoding import MaskedAutoencoder
from .masked_patches import MaskedPatchPrediction, mean_colours, target_colours
from .optimisers import build_optimiser, decay_groups
from .pretraining import load_pretraining, save_pretraining, with_objective
from .schedules import schedule_factor
from .self_supervised import HeldOut, Outcome, SelfSupervised
from .state import Callback, EpochMetrics

__all__ = [
    "Callback",
    "EpochMetrics",
    "Evaluation",
    "HeldOut",
    "MaskedAutoencoder",
    "MaskedPatchPrediction",
    "Outcome",
    "SelfSupervised",
    "StepLog",
    "TrainConfig",
    "build_optimiser",
    "decay_groups",
    "evaluate",
    "evaluate_batches",
    "evaluate_hidden",
    "load_pretraining",
    "mean_colours",
    "predict",
    "save_pretraining",
    "schedule_factor",
    "target_colours",
    "train",
    "with_objective",
]
