"""Files that ship with the package: recipes, studies, and the results that runs wrote."""

import codecs
import json
import stat
import tomllib
from collections.abc import Sequence
from importlib import resources
from pathlib import Path
from typing import Any

from vit_from_scratch.errors import InputError, reason, shown, unknown_name
from vit_from_scratch.paths import stat_of, typed_path


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

    It is returned with the file's name without its ending. `others` are further names, for messages.

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


def parse_toml(text: str, name: str) -> dict[str, Any]:
    """Read tables of TOML; messages call them by a name, such as "recipe 'mine.toml'".

    Raises:
        tomllib.TOMLDecodeError: it is not TOML.
        InputError: it holds a number or a nesting beyond what Python reads.
    """
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError:
        raise
    except RecursionError:
        raise InputError(f"{name} is nested too deeply: expected lists and tables of a few levels.") from None
    except ValueError:  # of int()
        raise InputError(f"{name} holds a number of thousands of digits: expected fewer.") from None


def read_toml(path: Path, name: str) -> dict[str, Any]:
    """Read a file of TOML; a byte-order mark, which some editors and shells write, names its encoding.

    Raises:
        InputError: there is no such file, it cannot be read, or it is not TOML.
    """
    found = stat_of(path)
    if found is None or not stat.S_ISREG(found.st_mode):  # a pipe would be waited for
        raise InputError(f"no {name}: expected a TOML file. Check its name.")
    try:
        wide = path.read_bytes()[:2] in (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)  # PowerShell's `>`
        return parse_toml(path.read_text("utf-16" if wide else "utf-8-sig"), name)
    except OSError as error:
        raise InputError(f"{name} cannot be read ({reason(error)}). Check its permissions.") from None
    except (UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise InputError(f"{name} is not TOML: {error}. Correct the file.") from None
