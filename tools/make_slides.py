"""Make a lecture of each chapter of the built book: _build/slides/NN_name.slides.html.

Headings, equations, lists, figures and code stand on the slides, with the first sentence of each paragraph;
the whole text stands in the notes (press S). Exercises become one slide with their titles.
"""

import argparse
import contextlib
import re
import sys
from pathlib import Path

import jupytext
import nbformat
from chapter_export.blocks import SIDE_NOTE, BlockWriter
from chapter_export.catalogue import Catalogue, read_catalogue
from jupyter_cache import get_cache
from nbconvert import SlidesExporter
from nbformat import NotebookNode
from project_facts import ROOT, chapters
from traitlets.config import Config

MOST_SENTENCES = 4  # of a slide
LONGEST_BESIDE_A_PICTURE = 8  # lines of code
SENTENCE = re.compile(r"(?<=\D[.!?])\s+(?=[A-Z*`$(])")
TAG = re.compile(r"\\tag\{(\d+)\}")
STYLE = Path(__file__).with_name("slides.css")


class SlideWriter:
    """Collect the slides of one chapter."""

    def __init__(self, catalogue: Catalogue, chapter: str) -> None:
        self.blocks = BlockWriter(catalogue, chapter)
        self.cells: list[NotebookNode] = []
        self.shown: list[str] = []  # waiting for their slide
        self.notes: list[str] = []
        self.kind = "slide"
        self.exercises: list[str] = []
        self.in_solution = False

    def markdown(self, source: str) -> None:
        """Sort a cell of text into slides and notes."""
        for gate, text in self.blocks.pieces(source):
            if gate is not None:
                self.in_solution = gate.name == "solution-start"
            elif text and not self.in_solution:
                self._block(text)

    def code(self, cell: NotebookNode) -> None:
        """Give a cell of code a slide of its own, under what was said before it."""
        if self.in_solution:
            return
        alone = self.kind == "-"
        self.flush()
        self.kind = "subslide" if alone else "-" if self.cells else "slide"
        hidden = bool({"hide-input", "remove-input"} & set(cell.metadata.get("tags", [])))
        drawn = any("image/png" in output.get("data", {}) for output in cell.outputs)
        hidden |= drawn and cell.source.count("\n") >= LONGEST_BESIDE_A_PICTURE
        cell = nbformat.from_dict(cell)
        for output in cell.outputs:
            output.get("metadata", {}).pop("needs_background", None)  # a slide is white
        cell.metadata = {"slideshow": {"slide_type": self.kind}}
        if hidden and cell.outputs:
            cell.metadata["tags"] = ["no-input"]
        self.cells.append(cell)
        self.kind = "-"

    def _block(self, text: str) -> None:
        """Show or note one block."""
        if text.startswith("### Exercise"):
            self.exercises.append(text.splitlines()[0].removeprefix("### "))
        elif text.startswith("#") and text != "## Exercises":
            self.flush()
            self.kind = "subslide" if text.startswith("###") else "slide"
            self.shown.append(text)
        elif text.startswith(("$$", "|", "![", "- ", "1. ", "```")):
            self.shown.append(TAG.sub(r" \\qquad (\1)", text))
        elif text.startswith(f"> **{SIDE_NOTE}"):
            self.notes.append(text)
        elif text.startswith("> **Your turn"):
            if not (self.kind == "slide" and len(self.shown) == 1):  # unless only a heading waits
                self.flush()
                self.kind = "subslide"
            self.shown.append(text)
        elif text.startswith(">"):
            title, _, rest = text.partition("\n>\n")
            body = rest if rest.startswith("> -") else f"> {_first(rest.replace('> ', ''))}"
            self.shown.append(f"{title}\n>\n{body}")
            self.notes.append(text)
        elif not text.startswith(("<details", "**Needs**", "(", "#")):
            if sum(part.startswith("- ") for part in self.shown) < MOST_SENTENCES:
                self.shown.append(f"- {_first(text)}")
            self.notes.append(text)

    def flush(self) -> None:
        """Make the slide of what waits, and its notes."""
        if self.shown:
            self._add(self.kind, self.shown)
            self.kind = "-"
        if self.notes and self.cells:
            self._add("notes", self.notes)
        self.shown, self.notes = [], []

    def finish(self) -> list[NotebookNode]:
        """Return all of the slides."""
        self.flush()
        if self.exercises:
            titles = "\n".join(f"- {title}" for title in self.exercises)
            self._add("slide", ["## Exercises", titles])
        return self.cells

    def _add(self, kind: str, texts: list[str]) -> None:
        metadata = {"slideshow": {"slide_type": kind}}
        self.cells.append(nbformat.v4.new_markdown_cell("\n\n".join(texts), metadata=metadata))


def _first(text: str) -> str:
    """Return the first sentence of a paragraph."""
    return SENTENCE.split(" ".join(text.split()), maxsplit=1)[0]


def with_outputs(chapter: Path, root: Path) -> NotebookNode:
    """Return a chapter's cells with the outputs that the built book shows.

    Raises:
        FileNotFoundError: the book has not been built from the chapter as it is.
    """
    caches = (root / "_build" / ".jupyter_cache").glob("*")
    for folder in sorted(caches, key=lambda path: path.stat().st_mtime, reverse=True):
        with contextlib.suppress(KeyError):
            return get_cache(folder).merge_match_into_notebook(jupytext.read(chapter, fmt="md:myst"))[1]
    raise FileNotFoundError(f"{chapter.name} is not in the built book: run `make book` first.")


def slides_of(chapter: Path, catalogue: Catalogue, root: Path = ROOT) -> str:
    """Turn a chapter into a page of slides."""
    notebook = with_outputs(chapter, root)
    writer = SlideWriter(catalogue, chapter.stem)
    for cell in notebook.cells:
        if cell.cell_type == "markdown":
            writer.markdown(cell.source)
        elif cell.cell_type == "code":
            writer.code(cell)
    notebook.cells = writer.finish()
    config = Config({"TagRemovePreprocessor": {"enabled": True, "remove_input_tags": {"no-input"}}})
    look = {"reveal_scroll": True, "reveal_transition": "none", "reveal_theme": "simple"}
    exporter = SlidesExporter(config=config, **look)
    page, _ = exporter.from_notebook_node(notebook, {"metadata": {"name": chapter.stem}})
    return page.replace("</head>", f"<style>\n{STYLE.read_text(encoding='utf-8')}</style>\n</head>", 1)


def main(arguments: list[str] | None = None, root: Path = ROOT) -> int:
    """Run from the command line."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("chapters", nargs="*", help="names or their beginnings, such as 03; none for all")
    wanted = options.parse_args(arguments).chapters
    paths = [path for path in chapters(root) if not wanted or path.stem.startswith(tuple(wanted))]
    if not paths:
        print(f"error: no chapter begins with {' or '.join(wanted)}.", file=sys.stderr)
        return 2
    catalogue = read_catalogue(root)
    for path in paths:
        page = root / "_build" / "slides" / f"{path.stem}.slides.html"
        page.parent.mkdir(parents=True, exist_ok=True)
        try:
            page.write_text(slides_of(path, catalogue, root), encoding="utf-8")
        except FileNotFoundError as error:
            print(f"error: {error}", file=sys.stderr)
            return 1
        print(f"wrote: {page.relative_to(root)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
