"""Which packages a runtime holds, and an interpreter of its version."""

import os
import re
import shutil
import subprocess
import sys
import tomllib
from dataclasses import dataclass
from pathlib import Path

from project_facts import ROOT

from vit_from_scratch.errors import InputError, unknown_name

LOCKED = "lock"
"""The runtime with this interpreter and the versions of requirements.lock, which lie in uv's cache."""
LOWEST = "lowest"
"""The runtime with the oldest Python and the lowest versions that pyproject.toml allows."""
KERNEL = ("ipykernel>=6.29", "pip>=24")  # what a runtime needs besides, to run notebooks and to install
OF_COLAB = ("torch", "torchvision", "matplotlib", "numpy", "scikit-learn", *KERNEL)


@dataclass(frozen=True)
class Runtime:
    """What a notebook finds before its set-up cell has run.

    Attributes:
        name: such as "colab-2026.08".
        python: the interpreter's version, such as "3.13".
        packages: requirements, for uv.
        options: further words for `uv pip install`.
    """

    name: str
    python: str
    packages: tuple[str, ...]
    options: tuple[str, ...] = ()


def colab_runtimes() -> dict[str, Runtime]:
    """Return Colab's runtimes by name, the latest first."""
    text = (Path(__file__).parent / "runtimes.toml").read_text(encoding="utf-8")
    return {
        name: Runtime(name, entry["python"], tuple(entry["packages"]))
        for name, entry in tomllib.loads(text).items()
    }


def read_runtime(name: str, root: Path = ROOT) -> Runtime:
    """Return a runtime of Colab's, the locked or the lowest one.

    Raises:
        InputError: there is none of this name.
    """
    known = colab_runtimes()
    if name in known:
        return known[name]
    if name == LOCKED:
        version = f"{sys.version_info.major}.{sys.version_info.minor}"
        options = ("--constraint", str(root / "requirements.lock"))
        return Runtime(name, version, OF_COLAB, options)
    if name == LOWEST:
        project = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))["project"]
        needed = (*project["dependencies"], *KERNEL)
        version = project["requires-python"].removeprefix(">=")
        return Runtime(name, version, needed, ("--resolution", "lowest-direct"))
    raise unknown_name("runtime", name, [*known, LOCKED, LOWEST])


def find_python(version: str) -> str:
    """Return an interpreter of a version: this one, one on the path, one of pyenv's, or one that uv brings.

    Raises:
        InputError: none can be had.
    """
    pyenv = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv")) / "versions"
    candidates = [sys.executable, shutil.which(f"python{version}")]
    candidates += [str(path / "bin/python") for path in sorted(pyenv.glob(f"{version}.*"))]
    for candidate in candidates:
        if candidate and _version(candidate) == version:
            return candidate
    uv = subprocess.run([uv_program(), "python", "find", version], capture_output=True, text=True)
    if uv.returncode:
        subprocess.run([uv_program(), "python", "install", "--quiet", version], capture_output=True)
        uv = subprocess.run([uv_program(), "python", "find", version], capture_output=True, text=True)
    if uv.returncode:
        raise InputError(f"Python {version} is not on this machine, and uv cannot fetch it.")
    return uv.stdout.strip()


def _version(python: str) -> str | None:
    """The version that an interpreter says it has; None for a shim that leads nowhere."""
    done = subprocess.run([python, "--version"], capture_output=True, text=True)
    found = re.fullmatch(r"Python (\d+\.\d+)\..*", done.stdout.strip())
    return found[1] if found and done.returncode == 0 else None


def uv_program() -> str:
    """The uv of the project's own environment, or the one on the path.

    Raises:
        InputError: there is none.
    """
    beside = Path(sys.executable).parent / "uv"
    found = str(beside) if beside.exists() else shutil.which("uv")
    if found is None:
        raise InputError("uv is missing; `make rehearse` installs it.")
    return found
