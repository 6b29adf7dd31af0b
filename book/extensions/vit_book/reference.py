"""Pages of the package: one for each module, written before Sphinx looks for pages, and lists of them.

The directive `package-modules` lists a package's modules, new files included. Where a docstring names an
equation of the paper, its page shows that equation, as the chapter writes it.
"""

import ast
import functools
import importlib
import itertools
import re
from pathlib import Path

from docutils import nodes
from docutils.nodes import Node
from docutils.statemachine import StringList
from project_facts import ROOT, chapters
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective
from sphinx.util.nodes import nested_parse_with_titles

PAGES = ROOT / "book" / "api" / "modules"
PACKAGE = ROOT / "vit_from_scratch"
ERRORS = ("Error", "Exception")
"""How the names end of what exceptions are made of."""
HEADINGS = {
    "autoclass": "Classes",
    "autoexception": "Errors",
    "autofunction": "Functions",
    "autodata": "Constants",
}
LABELLED = re.compile(r"^\(paper-eq-(\d+)\)=\n\$\$\n(.*?)\n\$\$", re.DOTALL | re.MULTILINE)
NAMED = re.compile(r"\bequations? (\d+)(?: (to|and) (\d+))?")


def modules(package: str) -> list[Path]:
    """The public modules of a package, by name."""
    return sorted(path for path in (PACKAGE / package).glob("[!_]*.py"))


def documented() -> list[str]:
    """The packages that have a page: those that a page of book/api lists.

    >>> "model" in documented()
    True
    """
    text = "".join(path.read_text(encoding="utf-8") for path in sorted((ROOT / "book" / "api").glob("*.md")))
    return re.findall(r"package-modules:: vit_from_scratch\.(\w+)", text)


def write_pages() -> None:
    """Write a page for each module, and remove those of modules that are gone; fresh files are left alone."""
    PAGES.mkdir(exist_ok=True)
    names = {f"{package}.{path.stem}" for package in documented() for path in modules(package)}
    for page in PAGES.glob("*.md"):
        if page.stem not in names:
            page.unlink()
    for name in names:
        page, text = PAGES / f"{name}.md", page_of(name)
        if not page.exists() or page.read_text(encoding="utf-8") != text:
            page.write_text(text, encoding="utf-8")


def page_of(name: str) -> str:
    """The page of a module: its docstring, then what it has, under a heading for each kind."""
    module = f"vit_from_scratch.{name}"
    parts = [f"# {name}", reference([f".. automodule:: {module}", "   :no-members:"])]
    found = members(PACKAGE / f"{name.replace('.', '/')}.py")
    for directive, heading in HEADINGS.items():
        names = [member for member, kind in found.items() if kind == directive]
        listed = reference([f".. {directive}:: {module}.{name}" for name in names])
        parts += [f"## {heading}", listed] if names else []
    return "\n\n".join(parts) + "\n"


def reference(lines: list[str]) -> str:
    """Lines of reStructuredText in a page of Markdown."""
    return "\n".join(["```{eval-rst}", *lines, "```"])


def members(path: Path) -> dict[str, str]:
    """What a module has that is public and documented, in its order, each with its directive of autodoc.

    >>> members(PACKAGE / "errors.py")["InputError"]
    'autoexception'
    """
    found: dict[str, str] = {}
    statements = ast.parse(path.read_text(encoding="utf-8")).body
    for statement, after in itertools.zip_longest(statements, statements[1:]):
        match statement:
            case ast.ClassDef(name=name, bases=bases):
                error = any(isinstance(base, ast.Name) and base.id.endswith(ERRORS) for base in bases)
                kind, documented = ("autoexception" if error else "autoclass"), ast.get_docstring(statement)
            case ast.FunctionDef(name=name):
                kind, documented = "autofunction", ast.get_docstring(statement)
            case ast.Assign(targets=[ast.Name(id=name)]) | ast.AnnAssign(target=ast.Name(id=name)):
                text = after.value if isinstance(after, ast.Expr) else None
                kind, documented = "autodata", isinstance(text, ast.Constant) and isinstance(text.value, str)
            case _:
                continue
        if documented and not name.startswith("_"):
            found[name] = kind
    return found


def summary(path: Path) -> str:
    """The first sentence of a module's docstring, as far as its first line goes."""
    docstring = ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or ""
    return docstring.partition("\n")[0]


class PackageModules(SphinxDirective):
    """`.. package-modules:: NAME` stands for the docstring of NAME and a list of its public modules."""

    required_arguments = 1

    def run(self) -> list[Node]:
        """Let autodoc read the package, and list its modules."""
        package = importlib.import_module(self.arguments[0])
        lines = [f".. automodule:: {package.__name__}", "   :no-members:", ""]
        short = package.__name__.rpartition(".")[2]
        for path in modules(short):
            self.env.note_dependency(str(path))
            lines += [f":doc:`{path.stem} <modules/{short}.{path.stem}>`", f"   {summary(path)}", ""]
        parent = nodes.section(document=self.state.document)
        nested_parse_with_titles(self.state, StringList(lines, package.__name__), parent)
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
    """Write the pages, register the directive, and read docstrings after napoleon has."""
    write_pages()
    app.add_directive("package-modules", PackageModules)
    app.connect("autodoc-process-docstring", show_equations, priority=600)
    app.connect("doctree-read", own_nodes)
