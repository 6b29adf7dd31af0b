"""The environments: one for each runtime, kept, and on top of it a fresh one for each notebook."""

import json
import shutil
import subprocess
from pathlib import Path

from project_facts import ROOT, read_version

from rehearsal.runtimes import Runtime, find_python, uv_program
from vit_from_scratch.errors import InputError
from vit_from_scratch.files import locked, write_atomically

PLACE = ROOT / "_build" / "rehearsal"
MARK = "built-from.json"
STARTS_AS_COLAB = "import google.colab\n"


def environment_of(runtime: Runtime, place: Path = PLACE) -> Path:
    """Build the environment of a runtime where it is missing or another one; uv links files of its cache.

    Returns:
        Its interpreter.

    Raises:
        InputError: no such interpreter can be had, or uv cannot install the packages.
    """
    folder = place / runtime.name
    python = find_python(runtime.python)
    made_of = json.dumps([python, *runtime.packages, *runtime.options]).encode()
    place.mkdir(parents=True, exist_ok=True)
    with locked(place):
        mark = folder / MARK
        if not (mark.exists() and mark.read_bytes() == made_of):
            shutil.rmtree(folder, ignore_errors=True)
            uv = uv_program()
            _run(uv, "venv", "--quiet", "--python", python, str(folder))
            own = folder / "bin" / "python"
            _run(uv, "pip", "install", "--quiet", "--python", str(own), *runtime.options, *runtime.packages)
            write_atomically(mark, made_of)
    return folder / "bin" / "python"


def _run(*command: str) -> None:
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        raise InputError(f"`{' '.join(command[:4])} ...` failed: {done.stderr.strip()}")


def fresh_environment(python: Path, folder: Path) -> Path:
    """Make an environment that sees all packages of another one and installs into itself.

    It begins every notebook as Colab does: a module `google.colab` is imported before the first cell.

    Args:
        python: of the environment below, from `environment_of`.
        folder: where to make it.

    Returns:
        Its interpreter.
    """
    _run(str(python), "-m", "venv", "--without-pip", str(folder))
    (below,) = (python.parent.parent / "lib").glob("python3*/site-packages")
    (own,) = (folder / "lib").glob("python3*/site-packages")
    (own / "below.pth").write_text(f"{below}\n", encoding="utf-8")
    stand_in = own / "google" / "colab" / "__init__.py"
    stand_in.parent.mkdir(parents=True)
    stand_in.write_text('"""Stands in for Colab\'s module."""\n', encoding="utf-8")
    start_up = folder / "ipython" / "profile_default" / "startup" / "colab.py"
    start_up.parent.mkdir(parents=True)
    start_up.write_text(STARTS_AS_COLAB, encoding="utf-8")
    return folder / "bin" / "python"


def colab_settings(folder: Path) -> dict[str, str]:
    """Return environment variables that a notebook finds in Colab, for the environment in this folder."""
    return {
        "IPYTHONDIR": str(folder / "ipython"),
        "COLAB_RELEASE_TAG": f"rehearsal-of-{read_version()}",
        "MPLBACKEND": "module://matplotlib_inline.backend_inline",
    }
