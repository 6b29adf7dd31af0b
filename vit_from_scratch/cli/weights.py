"""Models that commands look at: by name, or from a file or a run's folder of your own."""

import argparse
from pathlib import Path

from vit_from_scratch.errors import InputError
from vit_from_scratch.model.checkpoints import load_checkpoint
from vit_from_scratch.model.vit import VisionTransformer
from vit_from_scratch.normalisation import NORMALISATIONS, Normalisation
from vit_from_scratch.pretrained.registry import (
    RELEASES,
    SHIPPED,
    class_names,
    input_scaling,
    load_pretrained,
)
from vit_from_scratch.settings import from_table
from vit_from_scratch.training.data import DataConfig
from vit_from_scratch.training.run_folder import read_settings

KNOWN = (*SHIPPED, *RELEASES)


def add_weights(parser: argparse.ArgumentParser) -> None:
    """Add --weights."""
    parser.add_argument(
        "--weights",
        metavar="NAME",
        default="cifar10",
        help=f"{', '.join(KNOWN)}, a .safetensors file or a run's folder (default: cifar10)",
    )


def chosen_model(name: str) -> tuple[VisionTransformer, tuple[str, ...], Normalisation]:
    """Return the model that --weights names, its class names (numbers, if unknown) and its input scaling.

    The scaling of a run's model is read from the run's settings; a file alone is taken to want [-1, 1].

    Raises:
        InputError: no such weights.
    """
    path = Path(name)
    if name in KNOWN:
        return load_pretrained(name), class_names(name), input_scaling(name)
    if path.is_dir():
        path = path / "model.safetensors"
    elif path.suffix != ".safetensors":
        raise InputError(
            f"--weights {name}: expected one of {', '.join(KNOWN)}, a .safetensors file or a run's folder."
        )
    model = load_checkpoint(path).float()
    names = tuple(f"class {number}" for number in range(model.config.num_classes))
    return model, names, _scaling_of_run(path.parent)


def _scaling_of_run(folder: Path) -> Normalisation:
    """Return the input scaling of the run in a folder; to [-1, 1], as is usual here, if there is no run."""
    if not (folder / "config.toml").exists():
        return Normalisation()
    data = from_table(DataConfig, read_settings(folder)["data"], "data")
    return NORMALISATIONS[data.normalisation]
