"""Roles that know where the project is hosted and what was measured.

{source}`path` links a file, {colab}`text <path>` opens a notebook in Colab, {minutes}`chapter` says how long
it takes, {path_time}`1 2 7` how long several take together, {page_accuracy}`model` how often a model in
the page is right.
"""

import json
from collections.abc import Callable

from docutils import nodes
from docutils.nodes import Node, system_message
from project_facts import (
    ROOT,
    Repository,
    chapter_number,
    chapters,
    minutes_file,
    read_repository,
    reading_minutes,
    split_title,
    time_text,
    writing_minutes,
)
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxRole


def warning(role: SphinxRole, message: str) -> system_message:
    """A warning at the place where a role stands."""
    return role.inliner.reporter.warning(f"{{{role.name}}}: {message}.", line=role.lineno)


class FileRole(SphinxRole):
    """Link a file or folder of the repository, there or in Colab; a path that does not exist is a warning."""

    def __init__(self, address: Callable[[Repository, str], str]) -> None:
        super().__init__()
        self.address = address

    def run(self) -> tuple[list[Node], list[system_message]]:
        """Make the link."""
        text, path = split_title(self.text)
        if not (ROOT / path).exists():
            return [], [warning(self, f"there is no {path}")]
        link = nodes.reference(self.rawtext, "", refuri=self.address(read_repository(), path))
        link += nodes.Text(text) if text else nodes.literal(text=path)
        return [link], []


class MinutesRole(SphinxRole):
    """Say how long a chapter runs, from the recorded measurements."""

    def run(self) -> tuple[list[Node], list[system_message]]:
        """Make the text."""
        if chapter_number(self.text) is None:
            return [], [warning(self, f"{self.text} is not a chapter")]
        if minutes_file().exists():  # a dependency that is missing would make the page stale for ever
            self.env.note_dependency(str(minutes_file()))
        return [nodes.Text(time_text(self.text))], []


class PathTimeRole(SphinxRole):
    """Say how long chapters take together, by their numbers: to read, and to write what they ask for."""

    def run(self) -> tuple[list[Node], list[system_message]]:
        """Make the text."""
        for path in chapters():
            self.env.note_dependency(str(path))
        names = {int(path.stem[:2]): path.stem for path in chapters()}
        unknown = [number for number in self.text.split() if int(number) not in names]
        if unknown:
            return [], [warning(self, f"there is no chapter {', '.join(unknown)}")]
        on_path = [names[int(number)] for number in self.text.split()]
        times = (hours(sum(map(count, on_path))) for count in (reading_minutes, writing_minutes))
        return [nodes.Text("{} + {}".format(*times))], []


class PageAccuracyRole(SphinxRole):
    """Say what share of the test images a model in the page gets right, and in full precision."""

    def run(self) -> tuple[list[Node], list[system_message]]:
        """Make the text."""
        path = ROOT / "book/_static/vit" / f"{self.text}.json"
        if not path.exists():
            return [], [warning(self, f"there is no model {self.text} in the page")]
        self.env.note_dependency(str(path))
        found = json.loads(path.read_text(encoding="utf-8"))
        page, full = (f"{100 * found[part]['accuracy']:.2f} %" for part in ("page", "full_precision"))
        text = f"{page} of {found['page']['images']:,} test images right (in full precision {full})"
        return [nodes.Text(text)], []


def hours(minutes: int) -> str:
    """Round up to a quarter of an hour, in one word that no line breaks.

    >>> hours(46).split(), hours(105).split()
    (['1', 'h'], ['1¾', 'h'])
    """
    whole, quarters = divmod(-(-minutes // 15), 4)
    return f"{whole or ''}{['', '¼', '½', '¾'][quarters]}\N{NO-BREAK SPACE}h" if minutes else "0 h"


def setup(app: Sphinx) -> None:
    """Register the roles."""
    app.add_role("page_accuracy", PageAccuracyRole())
    app.add_role("path_time", PathTimeRole())
    app.add_role("source", FileRole(Repository.file_url))
    app.add_role("colab", FileRole(Repository.colab_url))
    app.add_role("minutes", MinutesRole())
