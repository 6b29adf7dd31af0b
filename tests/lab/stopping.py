"""A run that is stopped, and what two runs are compared by."""

from dataclasses import replace

import torch

from vit_from_scratch.training import Callback


class Stop(Callback):
    """Stop the run after an epoch as Ctrl-C would."""

    def __init__(self, after: int):
        self.after = after

    def on_epoch(self, state):
        if state.epoch == self.after:
            raise KeyboardInterrupt


def weights(model) -> torch.Tensor:
    return torch.cat([parameter.detach().flatten() for parameter in model.parameters()])


def without_time(history):
    return [replace(metrics, seconds=0.0) for metrics in history]
