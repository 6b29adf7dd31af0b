"""The directive `package-modules`: document every module of a package, new files included."""

import importlib
import pkgutil

from docutils import nodes
from docutils.nodes import Node
from docutils.statemachine import StringList
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective
from sphinx.util.nodes import nested_parse_with_titles


class PackageModules(SphinxDirective):
    """`.. package-modules:: NAME` stands for one automodule for each public module of NAME."""

    required_arguments = 1

    def run(self) -> list[Node]:
        """Let autodoc read each module."""
        package = importlib.import_module(self.arguments[0])
        names = sorted(module.name for module in pkgutil.iter_modules(package.__path__))
        lines = [f".. automodule:: {package.__name__}", "   :no-members:", ""]
        for name in names:
            if not name.startswith("_"):
                lines += [f".. automodule:: {package.__name__}.{name}", ""]
        parent = nodes.section(document=self.state.document)
        nested_parse_with_titles(self.state, StringList(lines, package.__name__), parent)
        return parent.children


def setup(app: Sphinx) -> None:
    """Register the directive."""
    app.add_directive("package-modules", PackageModules)
