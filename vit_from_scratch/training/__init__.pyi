from .callbacks import Callback, KeepEpochs, ProgressBar, StepLog
from .config import TrainConfig
from .evaluation import Evaluation, evaluate, evaluate_batches, predict
from .loop import train
from .optimisers import build_optimiser, decay_groups
from .schedules import schedule_factor
from .state import EpochMetrics

__all__ = [
    "Callback",
    "EpochMetrics",
    "Evaluation",
    "KeepEpochs",
    "ProgressBar",
    "StepLog",
    "TrainConfig",
    "build_optimiser",
    "decay_groups",
    "evaluate",
    "evaluate_batches",
    "predict",
    "schedule_factor",
    "train",
]
