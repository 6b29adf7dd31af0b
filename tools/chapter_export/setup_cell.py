"""The code cell that every notebook begins with: it installs the package in Colab, and nowhere else."""

import re
import tomllib
from pathlib import Path
from typing import Any

from project_facts import Repository, read_version

LEFT_ALONE = ("torch", "torchvision")  # Colab's own fit its driver; another version would break them
MODULES = {
    "lazy-loader": "lazy_loader",
    "pillow": "PIL",
    "scikit-image": "skimage",
    "scikit-learn": "sklearn",
    "tomli-w": "tomli_w",
}

SETUP = """\
#@title Set-up: run this cell first
BUDGET = "quick" #@param ["quick", "full"]

import importlib.metadata
import importlib.util
import os
import subprocess
import sys

repository, release = "{url}", "v{version}"
requirements = {requirements}

class SetUpError(ImportError):
    def _render_traceback_(self):  # notebooks show the sentence alone
        return [f"Set-up: {{self}}"]

def is_missing(module):
    return importlib.util.find_spec(module) is None

def run(*command):
    never_ask = {{**os.environ, "GIT_TERMINAL_PROMPT": "0"}}
    return subprocess.run(command, env=never_ask, capture_output=True, text=True)

def pip_install(*words):
    pip = run(sys.executable, "-m", "pip", "install", "--quiet", *words)
    if pip.returncode:
        said = [line for line in pip.stderr.splitlines() if line.startswith("ERROR")] or ["no reason given"]
        raise SetUpError(f"pip could not install {{words[-1]}} ({{said[-1]}}); run this cell again.")

def install_in_colab():
    torch = importlib.metadata.version("torch")
    if [int(part) for part in torch.split(".")[:2]] < [{torch_list}]:
        raise SetUpError(f"this runtime has torch {{torch}}, and {torch} or newer is needed: choose the "
                         "latest version in Runtime > Change runtime type, then run this cell again.")
    tag = run("git", "ls-remote", "--exit-code", repository, f"refs/tags/{{release}}").returncode
    if tag not in (0, 2):  # 2: there is no such tag
        raise SetUpError(f"{{repository}} cannot be reached: check the connection, then run this cell again.")
    state = release if tag == 0 else "{branch}"
    wanted = [requirement for module, requirement in requirements.items() if is_missing(module)]
    if wanted:
        pip_install(*wanted)
    pip_install("--no-deps", f"git+{{repository}}@{{state}}")  # torch stays as Colab has it
    importlib.invalidate_caches()
    print(f"Installed {{state}}" + ("." if tag == 0 else f", for there is no release {{release}} yet."))

if "google.colab" in sys.modules:
    os.environ["VIT_BUDGET"] = BUDGET  # "full" wants a GPU: Runtime > Change runtime type
    if is_missing("vit_from_scratch"):
        install_in_colab()
elif is_missing("vit_from_scratch"):
    raise SetUpError(f"this notebook needs its package: pip install 'git+{{repository}}@{{release}}' "
                     f"(before that release: without @{{release}}).")"""


def colab_requirements(root: Path, chapter: str = "") -> dict[str, str]:
    """What package and chapter need besides torch: the module to look for -> the range to ask pip for.

    Of the book's extra only what the chapter's text imports is among them.
    """
    project = _project(root)
    imported = set(re.findall(r"^import (\w+)$", chapter, flags=re.MULTILINE))
    extra = project.get("optional-dependencies", {}).get("book", [])
    needed = [*project["dependencies"], *(wanted for wanted in extra if _name(wanted) in imported)]
    names = {_name(wanted): wanted for wanted in needed}
    return {MODULES.get(name, name): wanted for name, wanted in names.items() if name not in LEFT_ALONE}


def oldest_torch(root: Path) -> str:
    """The lower bound that the project states for torch, such as "2.9"."""
    (wanted,) = (wanted for wanted in _project(root)["dependencies"] if _name(wanted) == "torch")
    return wanted.partition(">=")[2]


def _project(root: Path) -> dict[str, Any]:
    return tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))["project"]


def _name(requirement: str) -> str:
    """The name of a package in a requirement such as "timm>=1.0"."""
    return re.split(r"[^\w.-]", requirement, maxsplit=1)[0]


def setup_source(root: Path, repository: Repository, chapter: str = "") -> str:
    """The code of the set-up cell: it installs the package in Colab, elsewhere it says if that is missing."""
    lines = [f'    "{module}": "{wanted}",' for module, wanted in colab_requirements(root, chapter).items()]
    torch = oldest_torch(root)
    return SETUP.format(
        url=repository.url,
        branch=repository.branch,
        version=read_version(root),
        requirements="\n".join(["{", *lines, "}"]),
        torch=torch,
        torch_list=", ".join(torch.split(".")[:2]),
    )
