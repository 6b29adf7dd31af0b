"""The sequence of cells, from the set-up on: text rewritten, code kept, gated solutions folded."""

import hashlib
from collections.abc import Iterable
from pathlib import Path

import jupytext
import nbformat
from nbformat import NotebookNode
from project_facts import TRAINING_CHAPTERS, chapter_number, full_budget_text, read_code_prompt

from chapter_export.blocks import BlockWriter, details
from chapter_export.catalogue import Catalogue, figure_of
from chapter_export.markup import ExportError, leftovers
from chapter_export.setup_cell import setup_source

KEPT_TAGS = {"raises-exception"}  # it tells the kernel to go on after an error that is meant
HIDING_TAGS = {"hide-input", "hide-cell", "remove-input"}
# What folds a cell in Colab, under a first line "# @title ...", and in Jupyter.
FOLDED = {"cellView": "form", "jupyter": {"source_hidden": True}}
OURS = "Ours"  # the title of an answer of the book's
YOURS = "# Yours. Left empty, the check below looks at ours."
QUICK = "What is said of outputs is said of the budget `quick`; with `full` your numbers differ."
EARLIER = "earlier-answers"  # definitions from earlier chapters, which an assignment does not show
KNOWN_TAGS = KEPT_TAGS | HIDING_TAGS | {"hide-output", "remove-output", "scroll-output", EARLIER}
KNOWN_OPTIONS = {"tags", "mystnb"}
KNOWN_OUTPUT_OPTIONS = {"image", "figure", "code_prompt_show", "code_prompt_hide"}


class CellWriter:
    """Collect the cells of one chapter."""

    def __init__(self, catalogue: Catalogue, chapter: str) -> None:
        self.blocks = BlockWriter(catalogue, chapter)
        self.prompt = read_code_prompt(catalogue.root)
        self.cells: list[NotebookNode] = []
        self.text: list[str] = []  # blocks waiting to become a cell
        self.solution: list[str] | None = None  # what a gated solution holds so far; None outside of one

    def markdown(self, source: str) -> None:
        """Add a cell of text."""
        for gate, text in self.blocks.pieces(source):
            if gate is None:
                (self.text if self.solution is None else self.solution).append(text)
            elif gate.name == "solution-start":
                self._open(gate.argument)
            else:
                self._close()
        self._flush()

    def code(self, cell: NotebookNode) -> None:
        """Add a cell of code; inside a solution it becomes text, for the reader to copy or not."""
        unknown = set(cell.metadata) - KNOWN_OPTIONS
        unknown |= set(cell.metadata.get("mystnb", {})) - KNOWN_OUTPUT_OPTIONS
        unknown |= set(cell.metadata.get("tags", [])) - KNOWN_TAGS
        if unknown:
            raise ExportError(f"unknown options of a code cell: {', '.join(sorted(unknown))}.")
        figure = figure_of(cell)
        caption = self.blocks.caption(figure.get("name", ""), figure["caption"]) if figure else ""
        if self.solution is not None:
            self.solution += [f"```python\n{cell.source}\n```", caption]
            return
        tags = set(cell.metadata.get("tags", []))
        written = nbformat.v4.new_code_cell(cell.source)
        if tags & KEPT_TAGS:
            written.metadata["tags"] = sorted(tags & KEPT_TAGS)
        self.cells.append(written)
        if tags & HIDING_TAGS:
            prompt = cell.metadata.get("mystnb", {}).get("code_prompt_show", self.prompt)
            written.source = f"# @title {prompt}\n{cell.source}"
            written.metadata.update(FOLDED)
            if prompt == OURS:
                self.cells.append(nbformat.v4.new_code_cell(YOURS))
        if caption:
            self.cells.append(nbformat.v4.new_markdown_cell(caption))

    def _open(self, label: str) -> None:
        if self.solution is not None:
            raise ExportError(f"a solution-start, of {label}, inside a solution.")
        self._flush()
        self.solution = []

    def _close(self) -> None:
        self.cells.append(nbformat.v4.new_markdown_cell(details("Solution", self._solution_text())))

    def _solution_text(self) -> str:
        """What the solution that ends here has held."""
        if self.solution is None:
            raise ExportError("a solution-end without its solution-start.")
        body = "\n\n".join(text for text in self.solution if text)
        self.solution = None
        return body

    def _flush(self) -> None:
        source = "\n\n".join(text for text in self.text if text)
        self.text.clear()
        if source:
            self.cells.append(nbformat.v4.new_markdown_cell(source))


def chapter_cells(path: Path, writer: CellWriter) -> list[NotebookNode]:
    """Rewrite the cells of a chapter, by the writer's rules."""
    for number, cell in enumerate(jupytext.read(path, fmt="md:myst").cells, start=1):
        try:
            if cell.cell_type == "markdown":
                writer.markdown(cell.source)
            elif cell.cell_type == "code":
                writer.code(cell)
            else:
                raise ExportError(f"a {cell.cell_type} cell.")
        except ExportError as error:
            first = cell.source.strip().partition("\n")[0]
            raise ExportError(f"{path.name}, cell {number} ({first[:60]!r}): {error}") from error
    if writer.solution is not None:
        raise ExportError(f"{path.name}: a solution-start without its solution-end.")
    for cell in writer.cells:
        found = list(leftovers(cell.source)) if cell.cell_type == "markdown" else []
        if found:
            raise ExportError(f"{path.name}: MyST remains in the notebook: {'; '.join(found)}.")
    return writer.cells


def export_chapter(path: Path, catalogue: Catalogue) -> str:
    """Turn a chapter into the text of its .ipynb file, without outputs."""
    cells = chapter_cells(path, CellWriter(catalogue, path.stem))
    return framed(path, catalogue, f"notebooks/{path.stem}.ipynb", cells)


def framed(path: Path, catalogue: Catalogue, place: str, cells: list[NotebookNode]) -> str:
    """Put the cells of a chapter, or of an assignment made of it, behind those that all notebooks share.

    Returns the text of the .ipynb file, without outputs; `place` is its path in the repository.
    """
    repository = catalogue.repository
    badge = "https://colab.research.google.com/assets/colab-badge.svg"
    first = next(cell for cell in cells if cell.cell_type == "markdown")
    *opening, first.source = first.source.split("\n\n", 2)  # the title and what it is about
    head = [*opening, f"[![Open in Colab]({badge})]({repository.colab_url(place)})"]
    text = path.read_text(encoding="utf-8")
    if "by_budget(" in text:
        head.append(f"{full_budget_text(path.stem, catalogue.root)} {QUICK}")
    setup = setup_source(catalogue.root, repository, text)
    whole = [
        nbformat.v4.new_markdown_cell("\n\n".join(head)),
        nbformat.v4.new_code_cell(setup, metadata=FOLDED),
        *cells,
    ]
    name_cells(whole)
    metadata: dict[str, object] = {
        "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
        "language_info": {"name": "python"},
    }
    if chapter_number(path.stem) in TRAINING_CHAPTERS:  # which ask for a GPU of Colab's
        metadata |= {"accelerator": "GPU", "colab": {"gpuType": "T4"}}
    notebook: NotebookNode = nbformat.v4.new_notebook(cells=whole, metadata=metadata)
    nbformat.validate(notebook)
    return nbformat.writes(notebook) + "\n"


def name_cells(cells: Iterable[NotebookNode]) -> None:
    """Give each cell an id made of its text, so that the same chapter always gives the same file."""
    seen: dict[str, int] = {}
    for cell in cells:
        seen[cell.source] = seen.get(cell.source, -1) + 1
        cell.id = hashlib.sha256(f"{seen[cell.source]}{cell.source}".encode()).hexdigest()[:12]
        if "nbgrader" in cell.metadata:  # an answer, to which the book links: Colab asks for the id here
            cell.metadata["id"] = cell.id
