"""Files that ship with the package: recipes, pages of trials, and the results that runs wrote."""

import json
from importlib import resources
from typing import Any

from vit_from_scratch.errors import shown, unknown_name
from vit_from_scratch.paths import typed_path
from vit_from_scratch.settings import parse_toml, read_toml


def load_result(name: str) -> dict[str, Any]:
    """Read a result that ships with the package: what a run, a page of them or a measurement wrote.

    Args:
        name: of the recipe, the page or the measurement.

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


def page_table(folder: str, name: str) -> dict[str, Any]:
    """Read a page of trials or transfers as a table, with its name in it.

    Args:
        folder: of the pages that ship: "trials" or "transfers".
        name: of one of them, or the path of a TOML file.

    Raises:
        InputError: no such page, or no TOML.
    """
    if name.endswith(".toml"):
        path = typed_path(name, "the page's name")
        return {**read_toml(path, f"page {shown(name)}"), "name": path.stem}
    known = packaged_names(folder, ".toml")
    if name not in known:
        raise unknown_name(f"page of {folder}", name, known)
    return {**parse_toml(packaged_text(folder, f"{name}.toml"), f"page {name!r}"), "name": name}
