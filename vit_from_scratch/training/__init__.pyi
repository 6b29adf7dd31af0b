from .callbacks import StepLog
from .config import TrainConfig
from .evaluation import Evaluation, evaluate, evaluate_batches, evaluate_hidden, predict
from .features import image_features
from .few_shot import few_shot_accuracy
from .fine_tuning import adapted
from .loop import train
from .masked_autoencoding import MaskedAutoencoder
from .masked_patches import MaskedPatchPrediction, colours_of_numbers, mean_colours
from .optimisers import build_optimiser, decay_groups
from .pretraining import load_pretraining, save_pretraining
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
    "adapted",
    "build_optimiser",
    "colours_of_numbers",
    "decay_groups",
    "evaluate",
    "evaluate_batches",
    "evaluate_hidden",
    "few_shot_accuracy",
    "image_features",
    "load_pretraining",
    "mean_colours",
    "predict",
    "save_pretraining",
    "schedule_factor",
    "train",
]
