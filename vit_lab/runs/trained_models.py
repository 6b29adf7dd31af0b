"""A trained model from wherever it is: shipped or released by name, in a run's folder, or a file alone."""

import functools
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from vit_from_scratch.errors import InputError
from vit_from_scratch.paths import stat_of, typed_path
from vit_from_scratch.pretrained.releases import RELEASES, SHIPPED

if TYPE_CHECKING:  # a name is checked at once; PyTorch takes seconds
    from vit_from_scratch.data.normalisation import Normalisation
    from vit_from_scratch.model.vit import VisionTransformer

KNOWN = (*SHIPPED, *RELEASES)
"""The trained models that have a name."""

CLASSIFIERS = tuple(name for name in KNOWN if SHIPPED.get(name, "classes") == "classes")
"""Those of them that know classes."""

NAMELESS = re.compile(r"(class|flower) \d+")
"""What classes are called whose names were not noted; older torchvisions have no names for flowers."""


@dataclass(frozen=True, eq=False)
class TrainedModel:
    """A trained model, and what one has to know to use it.

    Attributes:
        name: what it was asked for by.
        model: on the CPU, in evaluation mode, with float32 weights.
        class_names: K names in the order of its logits; "class 0" and so on, if they were not noted.
        normalisation: how its images are scaled, one of `NORMALISATIONS` by name; None if it was not noted.
        objective: what it was trained for; a head that no label trained answers nothing.
    """

    name: str
    model: "VisionTransformer"
    class_names: tuple[str, ...]
    normalisation: str | None
    objective: str = "classes"

    @property
    def scaling(self) -> "Normalisation":
        """The function from bytes (B, C, H, W) to what the model takes; to [-1, 1], if it was not noted."""
        from vit_from_scratch.data.normalisation import NORMALISATIONS

        return NORMALISATIONS[self.normalisation or "half"]

    @functools.cached_property
    def sha256(self) -> str:
        """A checksum of its weights, by which one model is told from another wherever it is."""
        from vit_lab.runs.fingerprints import fingerprint

        return fingerprint("", self.model.state_dict())

    def check_colours(self, channels: int, data: str) -> None:
        """Refuse images of other channels than the model's scaling has colours, before they are scaled.

        Args:
            channels: of the images, C.
            data: the name of the data set.

        Raises:
            InputError: each colour has a scaling of its own, and the images are grey.
        """
        if (colours := len(self.scaling.mean)) not in (1, channels):
            raise InputError(
                f"{self.name} scales each of {colours} colours in its own way ({self.normalisation!r}), and "
                f"the images of {data} have {channels} channel{'' if channels == 1 else 's'}: expected "
                "colour photos. Convert them, or take other weights."
            )

    def check_classes(self, names: Sequence[str], data: str) -> None:
        """Refuse data whose classes are not those that the model's head tells apart, as far as names say so.

        Args:
            names: of the data's classes, in the order of the labels.
            data: the name of the data set.

        Raises:
            InputError: a class has another name.
        """
        if (number := renamed_class(self.class_names, names)) is not None:
            raise InputError(
                f"keep_head: class {number} is {self.class_names[number]!r} for {self.name} and "
                f"{names[number]!r} in {data}: expected the same classes in the same order. Leave keep_head "
                "out for a new head."
            )


def open_model(name: str, option: str = "--weights") -> TrainedModel:
    """Load a trained model.

    Class names and scaling of a run's model are read from the run's settings, those of a model that the run
    kept on the way, in `epochs`, too; a file alone is taken to want images in [-1, 1].

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
    settings, count = _settings_of_run(_folder_of_run(path)), model.config.num_classes
    if not settings:
        return TrainedModel(name, model, _numbered(count), None)
    from vit_from_scratch.data.config import DataConfig
    from vit_from_scratch.settings import from_table

    names = tuple(settings["images"]["classes"])
    names = names if len(names) == count else _numbered(count)
    scaling = from_table(DataConfig, settings["data"], "data").normalisation
    return TrainedModel(name, model, names, scaling, settings.get("objective", "classes"))


@functools.cache
def sha256_of(name: str) -> str:
    """Return the checksum of the weights of a model that has a name, one of `KNOWN`."""
    return open_model(name).sha256


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
    folder = path if stat_of(path) is not None and path.is_dir() else None
    if folder is not None:
        path = folder / "model.safetensors"
        stat_of(path)  # refuses a folder that may not be searched
    elif path.suffix != ".safetensors":
        raise InputError(
            f"{option} {name}: expected one of {', '.join(KNOWN)}, a .safetensors file or a run's folder."
        )
    if not path.is_file():
        if folder is not None and (runs := _runs_in(folder)):
            some = ", ".join(map(str, runs[:3])) + (", ..." if len(runs) > 3 else "")
            raise InputError(
                f"{option} {name} is a folder over runs ({some}): expected one of them, such as {runs[0]}."
            )
        raise InputError(f"no checkpoint at {path}: expected a .safetensors file; check the path.")
    return path


def _runs_in(folder: Path) -> list[Path]:
    """Return the finished runs of several seeds or of a sweep, those that were tested first."""
    models = [*folder.glob("*/model.safetensors"), *folder.glob("*/*/model.safetensors")]
    runs = (model.parent for model in models)
    return sorted(runs, key=lambda run: (not (run / "result.json").exists(), run))


def renamed_class(there: Sequence[str], here: Sequence[str]) -> int | None:
    """Return the number of the first class that has one name there and another here.

    Args:
        there: K names, in the order of the labels.
        here: as many.

    Returns:
        None if there is no such class, or if the names on one side were not noted.
    """
    if any(all(NAMELESS.fullmatch(str(name)) for name in names) for names in (there, here)):
        return None
    pairs = enumerate(zip(there, here, strict=False))  # other numbers of classes are another's to refuse
    return next((number for number, (old, new) in pairs if str(old) != str(new)), None)


def _folder_of_run(checkpoint: Path) -> Path:
    """Return the folder that holds a checkpoint's settings: its own, or the one over a run's `epochs`."""
    folder = checkpoint.absolute().parent
    kept = folder.name == "epochs" and not (folder / "config.toml").exists()
    return folder.parent if kept else folder


def _settings_of_run(folder: Path) -> dict[str, Any]:
    """Return the settings of the run in a folder; none if there is no run."""
    from vit_lab.runs.run_settings import read_settings

    return read_settings(folder) if (folder / "config.toml").exists() else {}


def _numbered(count: int) -> tuple[str, ...]:
    """Return names for classes that have none."""
    return tuple(f"class {number}" for number in range(count))
