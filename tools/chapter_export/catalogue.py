"""What chapters refer to: labels with their numbers and titles in all chapters, and the bibliography."""

from dataclasses import dataclass, field
from pathlib import Path

import jupytext
from markdown_it.token import Token
from nbformat import NotebookNode
from project_facts import ROOT, Repository, chapter_number, chapters, read_repository
from pybtex.database import Entry, parse_file

from chapter_export.markup import ExportError, directive_of, parser

EXERCISES = ("exercise", "exercise-start")
NUMBERED = {"equation": "({})", "exercise": "Exercise {}", "figure": "Figure {}"}


@dataclass(frozen=True)
class Target:
    """Something with a label: the chapter it stands in, what a reference to it shows, and its kind.

    The kind is one of NUMBERED, or none for a heading or a place in the text.
    """

    chapter: str
    text: str
    kind: str = ""


@dataclass
class Catalogue:
    """Everything that roles may name."""

    repository: Repository
    root: Path = ROOT
    titles: dict[str, str] = field(default_factory=dict)  # chapter -> its title
    labels: dict[str, Target] = field(default_factory=dict)
    bibliography: dict[str, Entry] = field(default_factory=dict)

    def add_chapter(self, path: Path) -> None:
        """Read the labels of one chapter."""
        reader = _LabelReader(self, path.stem)
        for cell in jupytext.read(path, fmt="md:myst").cells:
            if cell.cell_type == "markdown":
                reader.read(cell.source)
            elif figure := figure_of(cell):
                reader.figure(figure.get("name", ""))

    def numbers(self, kind: str, chapter: str) -> list[str]:
        """The numbers of a chapter's equations, exercises or figures, in the order of its text."""
        found = self.labels.values()
        return [target.text for target in found if (target.kind, target.chapter) == (kind, chapter)]

    def citation(self, key: str) -> tuple[str, str, str]:
        """Authors, year and address of an entry of the bibliography."""
        if key not in self.bibliography:
            raise ExportError(f"{key} is not in book/references.bib.")
        entry = self.bibliography[key]
        names = [" ".join([*person.prelast_names, *person.last_names]) for person in entry.persons["author"]]
        plain = [name.replace("{", "").replace("}", "") for name in names]
        authors = f"{plain[0]} et al." if len(plain) > 2 else " and ".join(plain)
        address = entry.fields.get("url") or f"https://doi.org/{entry.fields['doi']}"
        return authors, entry.fields["year"], address


class _LabelReader:
    """Walk through a chapter in the order of its text, and count as the book's numbering does."""

    def __init__(self, catalogue: Catalogue, chapter: str) -> None:
        self.catalogue, self.chapter = catalogue, chapter
        self.counts = dict.fromkeys(NUMBERED, 0)
        self.parser = parser()

    def read(self, source: str) -> None:
        """Read a Markdown cell, or the text inside a directive."""
        waiting: list[str] = []  # targets, which name the block that follows them
        tokens = self.parser.parse(source)
        for place, token in enumerate(tokens):
            if token.type == "myst_target":
                waiting.append(token.content)
            elif token.type == "heading_open":
                self._heading(tokens[place + 1].content, waiting)
            elif token.type == "math_block_label":
                self._number("equation", token.info)
            elif token.type in ("fence", "colon_fence"):
                self._directive(token)
            if token.type != "myst_target" and token.level == 0 and token.nesting >= 0:
                self._name(waiting, "")

    def _directive(self, token: Token) -> None:
        directive = directive_of(token)
        if directive is None or directive.name in ("code-cell", "code-block"):
            return
        if directive.name == "math" and "label" in directive.options:
            self._number("equation", directive.options["label"])
        elif directive.name in EXERCISES and "nonumber" not in directive.options:
            self._number("exercise", directive.options.get("label", ""))
        elif directive.name == "drawing":
            self.figure(f"drawing-{directive.argument}")
        elif directive.name == "figure" and directive.body:
            self.figure(directive.options.get("name", ""))
        self.read(directive.body)

    def figure(self, name: str) -> None:
        """Count a figure with a caption: a picture of the repository, or what a cell draws."""
        self._number("figure", name)

    def _number(self, kind: str, label: str) -> None:
        self.counts[kind] += 1
        number = f"{chapter_number(self.chapter)}.{self.counts[kind]}"
        target = Target(self.chapter, NUMBERED[kind].format(number), kind)
        self.catalogue.labels[label or f"{self.chapter} {kind} {number}"] = target

    def _heading(self, title: str, waiting: list[str]) -> None:
        self.catalogue.titles.setdefault(self.chapter, title)
        waiting.append(heading_slug(title))
        self._name(waiting, title)

    def _name(self, waiting: list[str], text: str) -> None:
        for name in waiting:
            self.catalogue.labels.setdefault(name, Target(self.chapter, text))
        waiting.clear()


def figure_of(cell: NotebookNode) -> dict[str, str]:
    """The name and the caption that a code cell gives to what it draws; empty without them."""
    return cell.metadata.get("mystnb", {}).get("figure", {})


def heading_slug(title: str) -> str:
    """The anchor that MyST gives a heading."""
    kept = "".join(letter for letter in title.lower() if letter.isalnum() or letter in " -_")
    return kept.strip().replace(" ", "-")


def read_catalogue(root: Path = ROOT, extra: tuple[Path, ...] = ()) -> Catalogue:
    """Read all chapters below `root`, and `extra` ones."""
    entries = parse_file(str(root / "book" / "references.bib")).entries
    catalogue = Catalogue(read_repository(root), root, bibliography=dict(entries.items()))
    for path in (*chapters(root), *extra):
        catalogue.add_chapter(path)
    return catalogue
