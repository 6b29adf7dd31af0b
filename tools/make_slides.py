"""Make a lecture of each chapter of the built book: _build/slides/NN_name.slides.html.

A section's key sentences begin a slide; equations, pictures with their captions, open code and what it prints
follow on it while there is room, then on the next. The text and our answers to the tasks stand in the notes
(press S). Exercises become one slide of titles. The folder is complete: a browser shows it without a network.
"""

import argparse
import contextlib
import html
import importlib.metadata
import re
import shutil
import sys
import tomllib
from pathlib import Path

import jupytext
from chapter_export.blocks import SIDE_NOTE, BlockWriter
from chapter_export.catalogue import Catalogue, read_catalogue
from jupyter_cache import get_cache
from nbconvert.filters import Highlight2HTML, ansi2html, markdown2html
from nbformat import NotebookNode
from project_facts import ROOT, chapters

MOST_LINES = 26  # of code and print together on one slide, and of print on one
FRAME, HEADING, POINT, LINE, EQUATION, PICTURE = 740, 60, 52, 25, 110, 560  # pixels of height, by slides.css
SQUEEZE = 60  # pixels that a slide may want more, and becomes smaller for
POINT_LETTERS = 88  # on a line
LEFT_OUT = re.compile(r"^(?:(?:import|from) |checks\.).*\n?", re.MULTILINE)  # lines of code
IMAGE = re.compile(r"(!\[.*?\]\(data:[^)]*\))", re.DOTALL)
LINK = re.compile(r"(?<!!)\[([^\]]+)\]\([^)\s]*\)")
HERE = Path(__file__).parent
MATHJAX = "sphinx-mathjax-offline/static/mathjax"
LICENCE = HERE.parent / "book" / "extensions" / "vit_book" / "mathjax-licence.txt"
PAGE = """<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{title}</title>
<style>
{style}</style>
</head>
<body>
{body}
<footer></footer>
<script>
{script}</script>
<script async src="mathjax/tex-chtml.js"></script>
</body>
</html>
"""


class SlideWriter:
    """Collect the slides of one chapter, as HTML.

    Args:
        catalogue: of the book.
        chapter: its name.
        sentences: what is said of each section, by its heading; other sections are left out.
    """

    def __init__(self, catalogue: Catalogue, chapter: str, sentences: dict[str, list[str]]) -> None:
        self.blocks = BlockWriter(catalogue, chapter)
        self.sentences = sentences
        self.slides: list[list[str]] = []
        self.notes: list[str] = []
        self.heading = ""
        self.shown = True
        self.in_solution = False
        self.exercises: list[str] = []
        self.room = 0  # pixels that are free on the last slide

    def markdown(self, source: str) -> None:
        """Sort a cell of text into slides and notes."""
        for gate, text in self.blocks.pieces(source):
            if gate is not None:
                self.in_solution = gate.name == "solution-start"
            elif text and not self.in_solution:
                self._block(LINK.sub(r"\1", text))

    def code(self, cell: NotebookNode) -> None:
        """Give code that stands open a slide, and what it printed or drew; note an answer to a task."""
        if self.in_solution or not self.shown:
            return
        tags, shown = {*cell.metadata.get("tags", [])}, cell.metadata.get("mystnb", {})
        prompt = shown.get("code_prompt_show", "")
        if prompt == "Ours":
            self.notes.append(f"Ours:\n\n```python\n{cell.source}\n```")
            return
        outputs = [_output(output, shown.get("image", {}).get("alt", "")) for output in cell.outputs]
        source = LEFT_OUT.sub("", cell.source).strip()
        parts = [part for part in outputs if part.startswith("<pre")] if source else []
        if "hide-cell" in tags:
            source, parts = "", []
        elif {"hide-input", "remove-input"} & tags and not prompt.endswith("given"):
            source = ""
        if source:
            parts.insert(0, f'<pre class="code">{_highlighted(source)}</pre>')
            if sum(map(_lines, [source, *parts[1:]])) <= MOST_LINES:
                parts = ["".join(parts)]
        for part in parts:
            self._continue(part, LINE * (_lines(part) + 1))
        figure = shown.get("figure")
        caption = LINK.sub(r"\1", self.blocks.caption(figure["name"], figure["caption"])) if figure else ""
        for part in outputs:
            if part.startswith("<img"):
                self._picture(part, caption)

    def _block(self, text: str) -> None:
        """Show or note one block."""
        if text.startswith("### Exercise"):
            self.exercises.append(text.splitlines()[0].removeprefix("### "))
        elif text.startswith(("# ", "## ", "### ")):
            self._flush_notes()
            self.heading = text.lstrip("# ")
            if not text.startswith("###"):
                self.shown = self.heading in self.sentences or not self.slides
            if self.shown:
                self._begin(text, self.sentences.get(self.heading, []))
        elif not self.shown or text.startswith(("<details", "**Needs**", "(")):
            return
        elif text.startswith("$$"):
            self._continue(_html(text), EQUATION)
        elif text.startswith("> **Your turn"):
            text = text.replace("Then run the check below, ", "Check it with ")
            self._continue(_html(text), POINT * (2 + len(text) // POINT_LETTERS))
            self.room = 0
        elif text.startswith("![") or (text.startswith("**Try it") and "![" in text):
            said, picture, rest = (part.strip() for part in IMAGE.split(text, maxsplit=1))
            caption, _, answer = rest.partition("\n\n")
            self._picture(_html(picture), caption)
            self.notes += filter(None, [said, answer.replace("<details>", "<details open>")])
        elif text.startswith("|"):
            self._continue(_html(text), PICTURE)
        elif text.startswith(("> **Warm-up", "> **What you will")):
            self.slides[0].append(_html(text.replace("> ", "").replace(">\n", "\n")))
            self.room = 0
        elif not text.startswith(f"> **{SIDE_NOTE}"):
            self.notes.append(text)

    def _begin(self, heading: str, points: list[str]) -> None:
        """Open a section with what is said of it."""
        self.slides.append([_html("\n- ".join([f"{heading}\n", *points]))])
        self.room = FRAME - HEADING - sum(POINT * (1 + len(one) // POINT_LETTERS) for one in points)

    def _picture(self, picture: str, caption: str) -> None:
        """Show a picture over its caption."""
        self._continue(f"<figure>{picture}<figcaption>{_html(caption)}</figcaption></figure>", PICTURE)

    def _continue(self, part: str, height: int) -> None:
        """Add something to the last slide, or to a new one under the heading of its section."""
        if height > self.room + SQUEEZE:
            self._flush_notes()
            self.slides.append([_html(f"## {self.heading}")])
            self.room = max(FRAME - HEADING, height)
        self.slides[-1].append(part)
        self.room -= height

    def _flush_notes(self) -> None:
        if self.notes and self.slides:
            notes = "\n\n".join(self.notes)
            self.slides[-1].append(f"<aside>{_html(notes)}</aside>")
        self.notes = []

    def finish(self) -> list[str]:
        """Return all of the slides."""
        self._flush_notes()
        if self.exercises:
            titles = "\n".join(f"- {title}" for title in self.exercises)
            self.slides.append([_html(f"## Exercises\n\n{titles}")])
        return ["".join(parts) for parts in self.slides]


def _html(text: str) -> str:
    return re.sub(r'<a class="anchor-link".*?</a>', "", markdown2html(text))


def _highlighted(source: str) -> str:
    found = re.search(r"<pre[^>]*>(.*)</pre>", Highlight2HTML()(source, language="python"), re.DOTALL)
    return found[1] if found else html.escape(source)


def _lines(text: str) -> int:
    """Count lines as they stand on a slide."""
    return sum(1 + len(re.sub(r"<[^>]*>", "", line)) // 105 for line in text.splitlines())


def _output(output: NotebookNode, alt: str) -> str:
    """Return a picture, or what was printed, as HTML; "" for what needs a live page."""
    data = output.get("data", {})
    if "image/png" in data:
        return f'<img alt="{html.escape(alt)}" src="data:image/png;base64,{data["image/png"].strip()}">'
    text = output.get("text", "") if output.get("name") == "stdout" else data.get("text/plain", "")
    if not text.strip() or "text/html" in data:
        return ""
    return "<pre>{}</pre>".format(ansi2html(text.strip("\n")))


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


def key_sentences() -> dict[str, dict[str, list[str]]]:
    """Return what is said of each section, by chapter and heading."""
    return tomllib.loads((HERE / "key_sentences.toml").read_text(encoding="utf-8"))


def slides_of(chapter: Path, catalogue: Catalogue, root: Path = ROOT) -> str:
    """Turn a chapter into a page of slides."""
    writer = SlideWriter(catalogue, chapter.stem, key_sentences()[chapter.stem])
    for cell in with_outputs(chapter, root).cells:
        if cell.cell_type == "markdown":
            writer.markdown(cell.source)
        elif cell.cell_type == "code":
            writer.code(cell)
    body = "\n".join(f"<section><div>{slide}</div></section>" for slide in writer.finish())
    style, script = ((HERE / f"slides.{kind}").read_text(encoding="utf-8") for kind in ("css", "js"))
    return PAGE.format(title=html.escape(chapter.stem), style=style, script=script, body=body)


def main(arguments: list[str] | None = None, root: Path = ROOT) -> int:
    """Run from the command line."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("chapters", nargs="*", help="names or their beginnings, such as 03; none for all")
    wanted = options.parse_args(arguments).chapters
    paths = [path for path in chapters(root) if not wanted or path.stem.startswith(tuple(wanted))]
    if not paths:
        print(f"error: no chapter begins with {' or '.join(wanted)}.", file=sys.stderr)
        return 2
    catalogue, folder = read_catalogue(root), root / "_build" / "slides"
    mathematics = importlib.metadata.distribution("sphinx-mathjax-offline").locate_file(MATHJAX)
    for path in paths:
        page = folder / f"{path.stem}.slides.html"
        folder.mkdir(parents=True, exist_ok=True)
        try:
            page.write_text(slides_of(path, catalogue, root), encoding="utf-8")
        except FileNotFoundError as error:
            print(f"error: {error}", file=sys.stderr)
            return 1
        print(f"wrote: {page.relative_to(root)}")
    for part in ("tex-chtml.js", "output/chtml/fonts"):
        source, target = Path(str(mathematics)) / part, folder / "mathjax" / part
        target.parent.mkdir(parents=True, exist_ok=True)
        (
            shutil.copytree(source, target, dirs_exist_ok=True)
            if source.is_dir()
            else shutil.copy(source, target)
        )
    shutil.copyfile(LICENCE, folder / "mathjax" / "LICENSE")
    return 0


if __name__ == "__main__":
    sys.exit(main())
