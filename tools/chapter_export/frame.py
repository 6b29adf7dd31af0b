"""The cells that every notebook begins with, and its metadata."""

import re
import tomllib
from pathlib import Path

import nbformat
from nbformat import NotebookNode
from project_facts import TRAINING_CHAPTERS, Repository, chapter_number, read_version

from chapter_export.catalogue import Catalogue
from chapter_export.cells import CellWriter, chapter_cells, name_cells

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

import importlib.util
import os
import subprocess
import sys

package = "git+{url}@v{version}"
requirements = {requirements}

def is_missing(module):
    return importlib.util.find_spec(module) is None

if "google.colab" in sys.modules:
    os.environ["VIT_BUDGET"] = BUDGET  # "full" wants a GPU: Runtime > Change runtime type
    if is_missing("vit_from_scratch"):
        pip = [sys.executable, "-m", "pip", "install", "--quiet"]
        wanted = [requirement for module, requirement in requirements.items() if is_missing(module)]
        if wanted:
            subprocess.run([*pip, *wanted], check=True)
        subprocess.run([*pip, "--no-deps", package], check=True)  # torch stays as Colab has it
        importlib.invalidate_caches()
elif is_missing("vit_from_scratch"):
    raise ModuleNotFoundError(f"this notebook needs its package: pip install '{{package}}'")"""


def badge(repository: Repository, place: str) -> str:
    """The button that opens the notebook with this path in Colab."""
    address = repository.colab_url(place)
    return f"[![Open in Colab](https://colab.research.google.com/assets/colab-badge.svg)]({address})"


def colab_requirements(root: Path, chapter: str = "") -> dict[str, str]:
    """What package and chapter need besides torch: the module to look for -> the range to ask pip for.

    Of the book's extra only what the chapter's text imports is among them.
    """
    project = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    imported = set(re.findall(r"^import (\w+)$", chapter, flags=re.MULTILINE))
    extra = project.get("optional-dependencies", {}).get("book", [])
    needed = [*project["dependencies"], *(wanted for wanted in extra if _name(wanted) in imported)]
    names = {_name(wanted): wanted for wanted in needed}
    return {MODULES.get(name, name): wanted for name, wanted in names.items() if name not in LEFT_ALONE}


def _name(requirement: str) -> str:
    """The name of a package in a requirement such as "timm>=1.0"."""
    return re.split(r"[^\w.-]", requirement, maxsplit=1)[0]


def setup_source(root: Path, repository: Repository, chapter: str = "") -> str:
    """The code of the set-up cell: it installs the package in Colab, elsewhere it says if that is missing."""
    lines = [f'    "{module}": "{wanted}",' for module, wanted in colab_requirements(root, chapter).items()]
    requirements = "\n".join(["{", *lines, "}"])
    return SETUP.format(url=repository.url, version=read_version(root), requirements=requirements)


def export_chapter(path: Path, catalogue: Catalogue) -> str:
    """Turn a chapter into the text of its .ipynb file, without outputs."""
    cells = chapter_cells(path, CellWriter(catalogue, path.stem))
    return framed(path, catalogue, f"notebooks/{path.stem}.ipynb", cells)


def framed(path: Path, catalogue: Catalogue, place: str, cells: list[NotebookNode]) -> str:
    """Put the cells of a chapter, or of an assignment made of it, behind those that all notebooks share.

    Args:
        path: the chapter.
        catalogue: knows where the project is hosted.
        place: the notebook's path in the repository, which Colab opens.
        cells: everything below the set-up.

    Returns:
        The text of the .ipynb file, without outputs.
    """
    setup = setup_source(catalogue.root, catalogue.repository, path.read_text(encoding="utf-8"))
    whole = [
        nbformat.v4.new_markdown_cell(badge(catalogue.repository, place)),
        nbformat.v4.new_code_cell(setup, metadata={"cellView": "form"}),
        *cells,
    ]
    name_cells(whole)
    notebook: NotebookNode = nbformat.v4.new_notebook(cells=whole, metadata=_metadata(path.stem))
    nbformat.validate(notebook)
    return nbformat.writes(notebook) + "\n"


def _metadata(chapter: str) -> dict[str, object]:
    """Which kernel to use, and a GPU of Colab's for the chapters that train."""
    metadata: dict[str, object] = {
        "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
        "language_info": {"name": "python"},
    }
    if chapter_number(chapter) in TRAINING_CHAPTERS:
        metadata |= {"accelerator": "GPU", "colab": {"gpuType": "T4"}}
    return metadata
