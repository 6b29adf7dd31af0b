"""What a finished run's folder says: its result, and its test number measured again."""

import json
import os
from pathlib import Path
from typing import Any

from vit_from_scratch.data.config import DataConfig
from vit_from_scratch.data.datasets import data_folder, open_dataset
from vit_from_scratch.errors import InputError, shown
from vit_from_scratch.files import sha256
from vit_from_scratch.model.checkpoints import load_checkpoint
from vit_from_scratch.settings import from_table
from vit_from_scratch.training.evaluation import Evaluation, evaluate_batches
from vit_from_scratch.training.guards import data_mismatch
from vit_lab.bars import images_with_bar
from vit_lab.runs.run_folder import MODEL
from vit_lab.runs.run_settings import CONFIG, differences, read_settings
from vit_lab.runs.trained_models import renamed_class

TESTED, HELD_OUT = ("test_accuracy", "test_loss", "test_images"), ("validation_loss", "validation_images")
"""Numbers of a run with labels, and of one without. Pixels have no accuracy."""

KINDS = dict.fromkeys(("seed", "epochs", "seconds", "parameters", "forward_flops"), int | float) | {
    "hardware": dict,
    "versions": dict,
    "date": str,
    "model_sha256": str,
    "commit": str | None,
    "data_dir": str | None,
}
"""What every result has besides."""

LARGEST = 1e300
"""Numbers of a result are below this, either way."""


def evaluate_run(
    folder: Path, data_dir: str | os.PathLike[str] | None = None, device: str = "cpu"
) -> tuple[Evaluation, dict[str, Any]]:
    """Load a finished run and measure it on its test set again.

    Args:
        folder: the run's folder.
        data_dir: where the data are; without it, VIT_DATA_DIR, else where they were when the run was trained,
            else they are downloaded.
        device: where to measure. Another device rounds otherwise, which may move the loss's last digits.

    Returns:
        The measurement, and what result.json says.

    Raises:
        InputError: the folder is not a finished run, its data cannot be found, or they have other classes.
    """
    settings = read_settings(folder)
    if (objective := settings.get("objective", "classes")) != "classes":
        raise InputError(
            f"{folder} has objective = {objective!r} and knows no classes: expected a run on classes. "
            "Fine-tune it first; its result.json has the held-out loss."
        )
    result = read_result(folder)
    model = load_checkpoint(folder / MODEL).to(device)
    if changed := differences({"model": model.config.to_dict()}, {"model": settings["model"]}):
        raise InputError(
            f"{folder / MODEL} is not of the same run as {folder / CONFIG}: {'; '.join(changed)}. "
            "Put this run's back."
        )
    noted = result.get("data_dir")
    there = data_folder(data_dir) or (noted if noted and os.path.isdir(noted) else None)
    data = open_dataset(from_table(DataConfig, settings["data"], "data"), there).to(device)
    found, noted = data_mismatch(model.config, data), settings["images"]["classes"]
    if found is None and (number := renamed_class(noted, data.class_names)) is not None:
        names = noted[number], data.class_names[number]
        found = f"class {number} was {names[0]!r} and is {names[1]!r} in {data.config.name}"
    if found is not None:
        raise InputError(f"{folder} was trained on other data: {found}. Put its own back.")
    batches = images_with_bar(data.batches("test"), data.size_of("test"), "measuring")
    return evaluate_batches(model, batches), result


def read_result(folder: Path, seed: int | None = None) -> dict[str, Any]:
    """Read a run's result.json.

    With a seed, it has to be that seed's.

    Raises:
        InputError: there is none yet, it is damaged, or it is another run's.
    """
    path, model = folder / "result.json", folder / MODEL
    try:
        result = json.loads(path.read_text("utf-8"))
        numbers = HELD_OUT if "objective" in result else TESTED
        given = {key: result.get(key) for key in (*numbers, *KINDS)}
    except FileNotFoundError as error:
        raise InputError(
            f"{folder} is not a finished run: expected result.json in it. "
            "Train it to the end with the same command, or name another folder."
        ) from error
    except (OSError, ValueError, TypeError, AttributeError) as error:
        raise InputError(f"{path} cannot be read ({error}): expected a run's result. Restore it.") from error
    for key, value in given.items():
        endless = isinstance(value, int | float) and not abs(value) < LARGEST
        if endless or not isinstance(value, KINDS.get(key, int | float)):
            raise InputError(f"{path} has {key} = {shown(value)}: expected a run's result. Restore it.")
    if seed not in (None, result["seed"]):
        raise InputError(f"{path} is of seed {result['seed']}: expected that of seed {seed}. Restore it.")
    if model.exists() and result["model_sha256"] != sha256(model):
        raise InputError(
            f"{model} is not the model that {path.name} tells of: it is damaged or another run's. Restore it."
        )
    return result
