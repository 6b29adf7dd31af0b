"""Files that ship with the package: recipes, studies, and the results that runs wrote."""

import json
from importlib import resources
from typing import Any

from vit_from_scratch.errors import unknown_name


def load_result(name: str) -> dict[str, Any]:
    """Read a result that ships with the package: what a run, a study or a measurement wrote.

    Args:
        name: of the recipe, the study or the measurement.

    Raises:
        InputError: there is no such result.
    """
    names = packaged_names("results", ".json")
    if name not in names:
        raise unknown_name("result", name, names)
    return json.loads(packaged_text("results", f"{name}.json"))


def packaged_text(folder: str, name: str) -> str:
    """Read a text file of the package."""
    return resources.files("vit_lab").joinpath(folder, name).read_text("utf-8")


def packaged_names(folder: str, ending: str) -> list[str]:
    """Return the names of the files of a folder, in order, without their ending."""
    files = resources.files("vit_lab").joinpath(folder).iterdir()
    return sorted(file.name.removesuffix(ending) for file in files if file.name.endswith(ending))
