"""Roles that know where the project is hosted and what was measured.

{source}`path` links a file, {colab}`text <path>` opens a notebook in Colab, {minutes}`chapter` says how long
it takes.
"""

from collections.abc import Callable

from docutils import nodes
from docutils.nodes import Node, system_message
from project_facts import (
    ROOT,
    Repository,
    chapter_number,
    minutes_file,
    read_repository,
    split_title,
    time_text,
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


def setup(app: Sphinx) -> None:
    """Register the roles."""
    app.add_role("source", FileRole(Repository.file_url))
    app.add_role("colab", FileRole(Repository.colab_url))
    app.add_role("minutes", MinutesRole())
