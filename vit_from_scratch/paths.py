"""Paths that a user typed: `~` filled in, and one clear sentence where a path cannot be one."""

import argparse
import os
from pathlib import Path

from vit_from_scratch.errors import InputError, reason, shown


def typed_path(text: str | os.PathLike[str], name: str) -> Path:
    """Return a path as it was typed, with the home folder in place of a leading `~`; errors say the name.

    Raises:
        InputError: it is empty, no system takes it, or the user behind `~` is unknown.
    """
    text = os.fspath(text)
    if not text.strip():
        raise InputError(f"{name} is empty: expected a path. Write one, or leave {name} out.")
    if "\0" in text:
        raise InputError(f"{name} = {shown(text)}: expected a path without a null character. Correct it.")
    try:
        return Path(text).expanduser()
    except RuntimeError:
        raise InputError(
            f"{name} = {shown(text)}: the home folder of {Path(text).parts[0]} is unknown here. "
            "Expected a path that exists; write it in full."
        ) from None


def stat_of(path: Path) -> os.stat_result | None:
    """Return what is at a path; None if nothing is.

    Raises:
        InputError: nobody can tell, since a folder on the way may not be searched or a name is too long.
    """
    try:
        return path.stat()
    except (FileNotFoundError, NotADirectoryError):
        return None
    except (OSError, ValueError) as error:
        raise InputError(
            f"{shown(os.fspath(path), 300)} cannot be opened ({reason(error)}): expected a path that you may "
            "read. Check its name and its folders' permissions."
        ) from None


def download_folder(kind: str) -> Path:
    """Return where downloads of a kind go by themselves: "data" or "weights", in the home folder's cache."""
    try:
        home = Path.home()
    except RuntimeError:
        named = "the folder that holds them" if kind == "data" else "a folder"
        raise InputError(
            f"the home folder, where downloaded {kind} would go, is unknown here: expected it in HOME. "
            f"Set HOME, or name {named} in VIT_{kind.upper()}_DIR."
        ) from None
    return home / ".cache" / "vit_from_scratch" / kind


def own_path(text: str) -> Path:
    """Take a path from the command line; one that is empty, or that nobody can look at, is refused."""
    try:
        path = typed_path(text, "it")
        stat_of(path)
        return path
    except InputError as error:
        raise argparse.ArgumentTypeError(str(error).rstrip(".")) from None
