"""A trained model from wherever it is: shipped or released by name, in a run's folder, or a file alone."""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from vit_from_scratch.errors import InputError
from vit_from_scratch.paths import stat_of, typed_path
from vit_from_scratch.pretrained.releases import RELEASES, SHIPPED, shipped_classes

if TYPE_CHECKING:  # a name is checked at once; PyTorch takes seconds
    from vit_from_scratch.data.normalisation import Normalisation
    from vit_from_scratch.model.vit import VisionTransformer

KNOWN = (*SHIPPED, *RELEASES)
"""The trained models that have a name."""


@dataclass(frozen=True, eq=False)
class TrainedModel:
    """A trained model, and what one has to know to use it.

    Attributes:
        name: what it was asked for by.
        model: on the CPU, in evaluation mode, with float32 weights.
        class_names: K names in the order of its logits; "class 0" and so on, if nobody noted them.
        normalisation: how its images are scaled, one of `NORMALISATIONS` by name; None if nobody noted it.
        objective: what it was trained for; a head that no label trained answers nothing.
    """

    name: str
    model: "VisionTransformer"
    class_names: tuple[str, ...]
    normalisation: str | None
    objective: str = "classes"

    @property
    def scaling(self) -> "Normalisation":
        """The function from bytes (B, C, H, W) to what the model takes; to [-1, 1], if nobody noted it."""
        from vit_from_scratch.data.normalisation import NORMALISATIONS

        return NORMALISATIONS[self.normalisation or "half"]

    @property
    def sha256(self) -> str:
        """A checksum of its weights, by which one model is told from another wherever it lies."""
        from vit_from_scratch.training.fingerprints import fingerprint

        return fingerprint("", self.model.state_dict())


def open_model(name: str, option: str = "--weights") -> TrainedModel:
    """Load a trained model.

    Class names and scaling of a run's model are read from the run's settings; a file alone is taken to want
    images in [-1, 1].

    Args:
        name: one of `KNOWN`, a run's folder, or a .safetensors file.
        option: what the name was given as, for messages.

    Raises:
        InputError: no such weights, or weights that are not finite.
    """
    if name in KNOWN:
        from vit_from_scratch.pretrained import class_names, load_pretrained

        model, objective = load_pretrained(name), SHIPPED.get(name, "classes")
        scaling = "half" if name in SHIPPED else RELEASES[name].scaling
        names = class_names(name) if objective == "classes" else _numbered(model.config.num_classes)
        return TrainedModel(name, model, names, scaling, objective)
    path = checkpoint_path(name, option)
    from vit_from_scratch.model.checkpoints import load_checkpoint

    model = load_checkpoint(path).float()
    if not all(values.isfinite().all() for values in model.state_dict().values()):
        raise InputError(
            f"{option} {name}: {path.name} holds values that are not finite: expected a trained model. Copy "
            "or train it again."
        )
    names = _classes_of_run(path.parent, model.config.num_classes)
    return TrainedModel(
        name, model, names, _normalisation_of_run(path.parent), _objective_of_run(path.parent)
    )


def open_classifier(name: str, option: str = "--weights") -> TrainedModel:
    """Load a trained model whose logits mean something.

    Args:
        name: as in `open_model`.
        option: likewise.

    Raises:
        InputError: as in `open_model`; or the model was trained without labels.
    """
    trained = open_model(name, option)
    if trained.objective != "classes":
        raise InputError(
            f"{option} {name}: it was trained without labels ({trained.objective}) and knows no classes. "
            "Expected a model that was trained on classes; fine-tune it first, with vit finetune."
        )
    return trained


def checkpoint_path(name: str, option: str = "--weights") -> Path:
    """Return the file that a run's folder or a path names.

    Raises:
        InputError: it is neither a run's folder nor a .safetensors file.
    """
    path = typed_path(name, option)
    if stat_of(path) is not None and path.is_dir():
        path = path / "model.safetensors"
        stat_of(path)  # refuses a folder that may not be searched
    elif path.suffix != ".safetensors":
        raise InputError(
            f"{option} {name}: expected one of {', '.join(KNOWN)}, a .safetensors file or a run's folder."
        )
    if not path.is_file():
        raise InputError(f"no checkpoint at {path}: expected a .safetensors file; check the path.")
    return path


def _classes_of_run(folder: Path, count: int) -> tuple[str, ...]:
    """Return the class names of the run in a folder; numbers, if there is no run or it does not say them."""
    from vit_from_scratch.training.run_settings import read_settings

    settings = read_settings(folder) if (folder / "config.toml").exists() else {}
    names = settings.get("images", {}).get("classes")
    if names is None and settings:  # of a run of the first version
        names = {"cifar10": shipped_classes("cifar10"), "digits": range(10)}.get(settings["data"].get("name"))
    if names is None or len(names) != count:
        return _numbered(count)
    return tuple(str(name) for name in names)


def _numbered(count: int) -> tuple[str, ...]:
    """Return names for classes that have none."""
    return tuple(f"class {number}" for number in range(count))


def _objective_of_run(folder: Path) -> str:
    """Return what the run in a folder was trained for; classes, if there is no run or it does not say."""
    from vit_from_scratch.training.run_settings import read_settings

    settings = read_settings(folder) if (folder / "config.toml").exists() else {}
    return str(settings.get("objective", "classes"))


def _normalisation_of_run(folder: Path) -> str | None:
    """Return the input scaling of the run in a folder; None, if there is no run."""
    from vit_from_scratch.data.config import DataConfig
    from vit_from_scratch.settings import from_table
    from vit_from_scratch.training.run_settings import read_settings

    if not (folder / "config.toml").exists():
        return None
    return from_table(DataConfig, read_settings(folder)["data"], "data").normalisation
