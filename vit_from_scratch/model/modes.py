"""Evaluation mode for a while."""

import contextlib
from collections.abc import Iterator

from torch import nn


@contextlib.contextmanager
def evaluating(model: nn.Module) -> Iterator[None]:
    """Put a model into evaluation mode, and afterwards back into the mode that it came in."""
    was_training = model.training
    model.eval()
    try:
        yield
    finally:
        model.train(was_training)
