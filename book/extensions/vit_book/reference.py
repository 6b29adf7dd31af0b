"""Pages of the packages: the directive `package-modules` documents the modules of a folder one by one.

Where a docstring names an equation of the paper, its page shows that equation, as the chapter writes it.
"""

import functools
import re
from typing import ClassVar

from docutils import nodes
from docutils.nodes import Node
from docutils.parsers.rst import directives
from docutils.statemachine import StringList
from project_facts import ROOT, chapters
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective
from sphinx.util.nodes import nested_parse_with_titles

WITHOUT = {"cli", "command"}
"""What no page documents: commands say themselves what they do."""
LABELLED = re.compile(r"^\(paper-eq-(\d+)\)=\n\$\$\n(.*?)\n\$\$", re.DOTALL | re.MULTILINE)
NAMED = re.compile(r"\bequations? (\d+)(?: (to|and) (\d+))?")


def modules(package: str, deep: bool = True) -> list[str]:
    """The public modules of a package by name, those of its folders too if `deep`.

    >>> "vit_from_scratch.model.patches" in modules("vit_from_scratch.model")
    True
    """
    folder = ROOT / package.replace(".", "/")
    found = (path.relative_to(ROOT).with_suffix("") for path in folder.glob("**/*.py" if deep else "*.py"))
    public = (path for path in found if path.name[0] != "_" and WITHOUT.isdisjoint(path.parts))
    return sorted(".".join(path.parts) for path in public)


class PackageModules(SphinxDirective):
    """`.. package-modules:: NAME` stands for the docstring of a package and for all of its public modules.

    With the option `:flat:` modules of folders inside of it are left out.
    """

    required_arguments = 1
    option_spec: ClassVar = {"flat": directives.flag}

    def run(self) -> list[Node]:
        """Let autodoc read the modules, each under a heading."""
        package = self.arguments[0]
        lines = [] if "flat" in self.options else [f".. automodule:: {package}", "   :no-members:", ""]
        for name in modules(package, deep="flat" not in self.options):
            title = name.partition(".")[2]
            lines += [title, "=" * len(title), "", f".. automodule:: {name}", ""]
        parent = nodes.section(document=self.state.document)
        nested_parse_with_titles(self.state, StringList(lines, package), parent)
        return parent.children


@functools.cache
def equations() -> dict[int, str]:
    """The paper's equations as the chapters write them, without their numbers.

    >>> equations()[7].strip()
    '\\\\text{SA}(z) = A v'
    """
    text = "".join(path.read_text(encoding="utf-8") for path in chapters())
    return {int(number): re.sub(r"\s*\\tag\{.*?\}", "", body) for number, body in LABELLED.findall(text)}


def named_equations(text: str) -> list[int]:
    """The numbers of the equations that a text names.

    >>> named_equations("The weights A (equation 6), then equations 7 and 8.")
    [6, 7, 8]
    """
    numbers: list[int] = []
    for first, word, last in NAMED.findall(text):
        numbers += range(int(first), int(last) + 1) if word == "to" else [int(n) for n in (first, last) if n]
    return sorted(set(numbers))


def show_equations(
    app: Sphinx, what: str, name: str, thing: object, options: object, lines: list[str]
) -> None:
    """Put the equations that a docstring's first line names below that line."""
    first = lines.index("") if "" in lines else len(lines)
    shown = []
    for path in chapters():
        app.env.note_dependency(str(path))
    for number in sorted({*named_equations(" ".join(lines[:first]))} & {*equations()}):
        body = [f"   {line}" for line in equations()[number].splitlines() if line.strip()]
        shown += ["", ".. math::", "", *body, ""]
    lines[first:first] = shown


def own_nodes(app: Sphinx, doctree: nodes.document) -> None:
    """Tie every node of a page to the page.

    What `{eval-rst}` reads it reads as a document of its own, which knows the whole book. Were its nodes left
    tied to that, the book would be written out with each such page and read back, 4 MB and a second a page.
    """
    for node in doctree.findall():
        node.document = doctree


def setup(app: Sphinx) -> None:
    """Register the directive, and read docstrings after napoleon has."""
    app.add_directive("package-modules", PackageModules)
    app.connect("autodoc-process-docstring", show_equations, priority=600)
    app.connect("doctree-read", own_nodes)
