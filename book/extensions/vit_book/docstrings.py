"""Let docstrings be written for people: bare names link, and a colon in a property's sentence is a colon."""

import project_facts
from docutils import nodes
from sphinx.addnodes import pending_xref
from sphinx.application import Sphinx
from sphinx.environment import BuildEnvironment
from sphinx.util.nodes import make_refnode

PACKAGES = tuple(f"{name}." for name in project_facts.PACKAGES)
HAS_NO_TYPE_PREFIX = ("attribute", "data", "property")


def keep_colon(app: Sphinx, what: str, name: str, thing: object, options: object, lines: list[str]) -> None:
    """Stop napoleon from reading 'Length: the number of tokens' as a type and a description.

    Types stand in annotations here, never in docstrings.
    """
    if what in HAS_NO_TYPE_PREFIX:
        lines[:0] = ["..", ""]  # an empty comment: napoleon looks at the first line alone
    if "Returns:" in lines:
        start = lines.index("Returns:")
        lines[start : start + 2] = [f":returns: {lines[start + 1].strip()}"]


def find_by_last_name(
    app: Sphinx, env: BuildEnvironment, node: pending_xref, contnode: nodes.TextElement
) -> nodes.reference | None:
    """Resolve `InputError` to the one object of our packages of that last name, wherever it stands."""
    if node.get("refdomain") != "py":
        return None
    suffix = f".{node['reftarget'].lstrip('~').rsplit('.', 1)[-1]}"
    objects = env.get_domain("py").objects
    found = [name for name in objects if name.startswith(PACKAGES) and name.endswith(suffix)]
    if len(found) != 1:
        return None
    target = objects[found[0]]
    return make_refnode(app.builder, node["refdoc"], target.docname, target.node_id, contnode, found[0])


def setup(app: Sphinx) -> None:
    """Run the first before napoleon, the second when Sphinx found nothing."""
    app.connect("autodoc-process-docstring", keep_colon, priority=400)
    app.connect("missing-reference", find_by_last_name)
