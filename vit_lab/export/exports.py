"""A trained model as a file for other programs, which also says what one has to know to use it."""

import functools
import json
import math
import os
from collections.abc import Callable
from dataclasses import dataclass, replace
from importlib.metadata import version
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load as deserialise
from safetensors.torch import save as serialise
from torch import Tensor

from vit_from_scratch.errors import InputError
from vit_from_scratch.files import write_atomically
from vit_from_scratch.model.modes import evaluating
from vit_from_scratch.training.fine_tuning import adapted
from vit_lab.export.formats import format_named
from vit_lab.export.graphs import Run, ScaledViT, onnx_file, pt2_file
from vit_lab.export.to_timm import timm_arguments, timm_weights
from vit_lab.runs.trained_models import KNOWN, TrainedModel

TOLERANCE = 1e-4
"""How far an exported model's logits may be from ours, as a share of the largest, or of 1 if that is less."""
CHECKED_BATCHES = (1, 8)

ARCHITECTURE = "vit_base_patch16_224"
"""The model that `timm.create_model` begins with; every size of ours is given beside it."""


@dataclass(frozen=True)
class Export:
    """A file that was written.

    Attributes:
        path: where it is.
        notes: what it says about itself, by name.
        difference: between its logits and ours, as a share of the largest (or of 1); None if nothing here
            can run it.
    """

    path: Path
    notes: dict[str, str]
    difference: float | None


def export_model(
    trained: TrainedModel,
    path: str | os.PathLike[str],
    format: str = "onnx",
    image_size: int | tuple[int, int] | None = None,
) -> Export:
    """Write a trained model to a file for other programs, once it has given the same logits as ours.

    ONNX is compared only where onnxruntime is installed. Graphs take batches of any size and images from 0 to
    1, which they scale themselves; timm's weights take scaled images, like timm's own.

    Args:
        trained: the model with its class names and scaling.
        path: where to; a file there is replaced.
        format: one of `FORMATS`.
        image_size: side of the images in pixels, or (H, W), if not the model's own.

    Raises:
        InputError: a package is missing, the format cannot hold the model, the size does not fit its
            patches, the logits differ, or the place cannot be written to. Then no file is written.
    """
    path, kind = Path(path), format_named(format)
    if not isinstance(trained, TrainedModel):
        raise InputError(
            f"a model of type {type(trained).__name__}: expected what open_classifier returns, with classes "
            "and scaling. Take open_classifier(RUN), or vit_lab.runs.trained_models.TrainedModel."
        )
    if image_size is not None:
        classes = trained.model.config.num_classes
        trained = replace(trained, model=adapted(trained.model, image_size, classes, keep_head=True).eval())
    model = ScaledViT(trained.model, trained.scaling)
    notes = _notes(trained, kind.scaled_inside)
    if not kind.scaled_inside:
        notes |= {"architecture": ARCHITECTURE, "create": timm_call(trained, path.name)}
    with evaluating(model):
        content, run = MAKERS[format](model, notes)
        difference = None if run is None else _checked(run, trained, model.example, format)
    write_atomically(path, content)
    return Export(path, notes, difference)


def _notes(trained: TrainedModel, scaled_inside: bool) -> dict[str, str]:
    config, scaling = trained.model.config, trained.scaling
    shape = ", ".join(map(str, (config.channels, *config.image_shape)))
    values = "from 0 to 1; (x - mean) / std is inside" if scaled_inside else "(x - mean) / std of 0 to 1"
    return {
        "producer": f"vit_from_scratch {version('vit-from-scratch')}",
        "model": trained.name if trained.name in KNOWN else Path(trained.name).absolute().name,
        "input": f"images, float32 (B, {shape}), {values}",
        "output": f"logits, float32 (B, {config.num_classes}); softmax makes them probabilities",
        "normalisation": "inside" if scaled_inside else "before",
        "mean": json.dumps(scaling.mean),
        "std": json.dumps(scaling.std),
        "image_size": json.dumps(config.image_shape),
        "class_names": json.dumps(trained.class_names),
        "vit_config": json.dumps(config.to_dict()),
    }


def timm_call(trained: TrainedModel, file: str) -> str:
    """Return the line of Python that gives timm's model with the weights of a file."""

    def source(value: Any) -> str:
        if isinstance(value, functools.partial):
            return f"functools.partial(torch.nn.LayerNorm, eps={value.keywords['eps']})"
        return repr(value)

    arguments = {"checkpoint_path": file, **timm_arguments(trained.model.config)}
    said = ", ".join(f"{name}={source(value)}" for name, value in arguments.items())
    return f"timm.create_model({ARCHITECTURE!r}, {said})"


def timm_file(model: ScaledViT, notes: dict[str, str]) -> tuple[bytes, Run]:
    """Return a file of timm's weights, and what scales images and runs timm's own model with them."""
    import timm

    weights = {name: tensor.contiguous() for name, tensor in timm_weights(model.model).items()}
    content = serialise(weights, notes)
    theirs = timm.create_model(ARCHITECTURE, **timm_arguments(model.model.config))
    theirs.load_state_dict(deserialise(content))
    theirs.eval()
    return content, lambda images: theirs(model.scaled(images))


MAKERS = {"onnx": onnx_file, "pt2": pt2_file, "safetensors-timm": timm_file}
"""For each format what makes its bytes, and what runs them."""


@torch.no_grad()
def _checked(run: Run, trained: TrainedModel, example: Callable[[int], Tensor], format: str) -> float:
    """Return how far the logits of what was made for a file are from ours; refuse it if they differ."""
    difference = 0.0
    for images in map(example, CHECKED_BATCHES):
        expected, found = trained.model(trained.scaling(255 * images)), run(images)
        scale = expected.abs().max().clamp(min=1)
        same_shape = found.shape == expected.shape
        apart = ((found - expected).abs().max() / scale).item() if same_shape else math.inf
        if not apart <= TOLERANCE:  # NaN is not
            raise InputError(
                f"what --format {format} makes of {trained.name} gives other logits (they differ by "
                f"{apart:.1e}): expected at most {TOLERANCE:g}; nothing was written. Take another format."
            )
        difference = max(difference, apart)
    return difference
