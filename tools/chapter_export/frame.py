"""The cells that every notebook begins with, and its metadata."""

from pathlib import Path

import nbformat
from nbformat import NotebookNode
from project_facts import TRAINING_CHAPTERS, Repository, chapter_number, full_budget_text

from chapter_export.catalogue import Catalogue
from chapter_export.cells import CellWriter, chapter_cells, name_cells
from chapter_export.setup_cell import setup_source


def badge(repository: Repository, place: str) -> str:
    """The button that opens the notebook with this path in Colab."""
    address = repository.colab_url(place)
    return f"[![Open in Colab](https://colab.research.google.com/assets/colab-badge.svg)]({address})"


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
    budget = full_budget_text(path.stem, catalogue.root)
    whole = [
        nbformat.v4.new_markdown_cell(f"{badge(catalogue.repository, place)}\n\n{budget}"),
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
