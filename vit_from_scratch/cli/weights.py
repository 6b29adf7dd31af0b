"""Models that commands look at: by name, or from a file or a run's folder of your own."""

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from vit_from_scratch.errors import InputError
from vit_from_scratch.paths import stat_of, typed_path
from vit_from_scratch.pretrained.releases import RELEASES, SHIPPED, shipped_classes

if TYPE_CHECKING:  # imported where they are needed: PyTorch takes seconds
    from vit_from_scratch.data.normalisation import Normalisation
    from vit_from_scratch.model.vit import VisionTransformer

KNOWN = (*SHIPPED, *RELEASES)


def add_weights(parser: argparse.ArgumentParser) -> None:
    """Add --weights."""
    parser.add_argument(
        "--weights",
        metavar="NAME",
        default="cifar10",
        help=f"{', '.join(KNOWN)}, a .safetensors file or a run's folder (default: cifar10)",
    )


def chosen_model(name: str) -> "tuple[VisionTransformer, tuple[str, ...], Normalisation]":
    """Return the model that --weights names, its class names (numbers, if unknown) and its input scaling.

    The scaling of a run's model is read from the run's settings; a file alone is taken to want [-1, 1].

    Raises:
        InputError: no such weights, or weights that are not finite.
    """
    if name in KNOWN:
        from vit_from_scratch.pretrained import class_names, input_scaling, load_pretrained

        return load_pretrained(name), class_names(name), input_scaling(name)
    path = typed_path(name, "--weights")
    if stat_of(path) is not None and path.is_dir():
        path = path / "model.safetensors"
        stat_of(path)  # refuses a folder that may not be searched
    elif path.suffix != ".safetensors":
        raise InputError(
            f"--weights {name}: expected one of {', '.join(KNOWN)}, a .safetensors file or a run's folder."
        )
    from vit_from_scratch.model.checkpoints import load_checkpoint

    model = load_checkpoint(path).float()
    if not all(values.isfinite().all() for values in model.state_dict().values()):
        raise InputError(
            f"--weights {name}: {path.name} holds values that are not finite: expected a trained model. Copy "
            "or train it again."
        )
    names = _classes_of_run(path.parent, model.config.num_classes)
    return model, names, _scaling_of_run(path.parent)


def _classes_of_run(folder: Path, count: int) -> tuple[str, ...]:
    """Return the class names of the run in a folder; numbers, if there is no run or it does not say them."""
    from vit_from_scratch.training.run_settings import read_settings

    settings = read_settings(folder) if (folder / "config.toml").exists() else {}
    names = settings.get("images", {}).get("classes")
    if names is None and settings:  # of a run of the first version
        names = {"cifar10": shipped_classes("cifar10"), "digits": range(10)}.get(settings["data"].get("name"))
    if names is None or len(names) != count:
        return tuple(f"class {number}" for number in range(count))
    return tuple(str(name) for name in names)


def _scaling_of_run(folder: Path) -> "Normalisation":
    """Return the input scaling of the run in a folder; to [-1, 1], as is usual here, if there is no run."""
    from vit_from_scratch.data import DataConfig, Normalisation
    from vit_from_scratch.data.normalisation import NORMALISATIONS
    from vit_from_scratch.settings import from_table
    from vit_from_scratch.training.run_settings import read_settings

    if not (folder / "config.toml").exists():
        return Normalisation()
    data = from_table(DataConfig, read_settings(folder)["data"], "data")
    return NORMALISATIONS[data.normalisation]
