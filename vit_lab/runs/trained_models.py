"""A trained model from wherever it is: shipped or released by name, in a run's folder, or a file alone."""

import functools
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

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
        """Raise an `InputError` if each colour has a scaling of its own and the images of `data` are grey."""
        if (colours := len(self.scaling.mean)) not in (1, channels):
            raise InputError(
                f"{self.name} scales each of {colours} colours in its own way ({self.normalisation!r}), and "
                f"the images of {data} have {channels} channel{'' if channels == 1 else 's'}: expected "
                "colour photos. Convert them, or take other weights."
            )

    def check_classes(self, names: Sequence[str], data: str) -> None:
        """Raise an `InputError` if a class of `data` has another name than the model's head knows it by."""
        if (number := renamed_class(self.class_names, names)) is not None:
            raise InputError(
                f"keep_head: class {number} is {self.class_names[number]!r} for {self.name} and "
                f"{names[number]!r} in {data}: expected the same classes in the same order. Leave keep_head "
                "out for a new head."
            )


def open_model(name: str, option: str = "--weights") -> TrainedModel:
    """Load a trained model.

    Class names and scaling are read from the run's settings; a file alone is taken to want images in [-1, 1].

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
    # imported here: a mistyped name is answered without PyTorch
    from vit_from_scratch.data.config import DataConfig
    from vit_from_scratch.model.checkpoints import load_checkpoint
    from vit_from_scratch.settings import from_table
    from vit_lab.runs.run_settings import CONFIG, read_settings

    model = load_checkpoint(path).float()
    if not all(values.isfinite().all() for values in model.state_dict().values()):
        raise InputError(
            f"{option} {name}: {path.name} holds values that are not finite: expected a trained model. Copy "
            "or train it again."
        )
    names, folder = _numbered(model.config.num_classes), path.absolute().parent
    if folder.name == "epochs" and not (folder / CONFIG).exists():  # of a run, on the way
        folder = folder.parent
    if not (folder / CONFIG).exists():
        return TrainedModel(name, model, names, None)
    settings = read_settings(folder)
    noted = tuple(settings["images"]["classes"])
    scaling = from_table(DataConfig, settings["data"], "data").normalisation
    names = noted if len(noted) == len(names) else names
    return TrainedModel(name, model, names, scaling, settings.get("objective", "classes"))


def open_classifier(name: str, option: str = "--weights") -> TrainedModel:
    """Load a trained model, as `open_model` does, whose logits mean something.

    Raises:
        InputError: as there; or the model was trained without labels.
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
        if stat_of(path) is None:  # it refuses a folder that may not be searched
            begun = (path.parent / "checkpoint.safetensors").exists()
            expected = "Train it to the end, with the same command" if begun else "Name a run's folder"
            raise InputError(
                f"{option} {name}: it is not the folder of a finished run, since it has no {path.name}. "
                f"{expected}, or take one of {', '.join(KNOWN)} or a .safetensors file."
            )
    elif path.suffix != ".safetensors":
        raise InputError(
            f"{option} {name}: expected one of {', '.join(KNOWN)}, a .safetensors file or a run's folder."
        )
    if not path.is_file():
        raise InputError(f"no checkpoint at {path}: expected a .safetensors file; check the path.")
    return path


def renamed_class(there: Sequence[str], here: Sequence[str]) -> int | None:
    """Return the number of the first class that has one name there and another here, in the labels' order.

    It is None if there is no such class, or if the names on one side were not noted.
    """
    if any(all(NAMELESS.fullmatch(str(name)) for name in names) for names in (there, here)):
        return None
    pairs = enumerate(zip(there, here, strict=False))  # other numbers of classes are another's to refuse
    return next((number for number, (old, new) in pairs if str(old) != str(new)), None)


def _numbered(count: int) -> tuple[str, ...]:
    return tuple(f"class {number}" for number in range(count))
