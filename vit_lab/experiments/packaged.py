"""Files that ship with the package: recipes, studies, and the results that runs wrote."""

import json
from collections.abc import Sequence
from importlib import resources
from typing import Any

from vit_from_scratch.errors import shown, unknown_name
from vit_from_scratch.paths import typed_path
from vit_from_scratch.settings import parse_toml, read_toml


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


def load_table(kind: str, folder: str, name: str, others: Sequence[str] = ()) -> tuple[dict[str, Any], str]:
    """Read the TOML of a recipe or a study: one in a folder of the package, or a file by its path.

    It is returned with the file's name without its ending. What else has a name is for messages.

    Raises:
        InputError: an unknown name, or a file that is not TOML.
    """
    if name.endswith(".toml"):
        path = typed_path(name, f"the {kind}'s name")
        return read_toml(path, f"{kind} {shown(name)}"), path.stem
    if name not in (names := packaged_names(folder, ".toml")):
        raise unknown_name(kind, name, [*names, *others])
    return parse_toml(packaged_text(folder, f"{name}.toml"), f"{kind} {name!r}"), name


def packaged_text(folder: str, name: str) -> str:
    """Read a text file of the package."""
    return resources.files("vit_lab").joinpath(folder, name).read_text("utf-8")


def packaged_names(folder: str, ending: str) -> list[str]:
    """Return the names of the files of a folder, in order, without their ending."""
    files = resources.files("vit_lab").joinpath(folder).iterdir()
    return sorted(file.name.removesuffix(ending) for file in files if file.name.endswith(ending))
