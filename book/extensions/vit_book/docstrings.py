"""Let docstrings be written for people: names and chapters link, a colon in a property's sentence is a colon.

Values and defaults that only an interpreter would write are left out.
"""

import re

import project_facts
from docutils import nodes
from sphinx import addnodes
from sphinx.application import Sphinx
from sphinx.environment import BuildEnvironment
from sphinx.util.nodes import make_refnode

PACKAGES = tuple(f"{name}." for name in project_facts.PACKAGES)
HAS_NO_TYPE_PREFIX = ("attribute", "data", "property")
CHAPTER = re.compile(r"\b([Cc]hapter (\d+))\b")
CHAPTERS = {project_facts.chapter_number(path.stem): path.stem for path in project_facts.chapters()}
LONGEST_VALUE = 120  # characters


def keep_colon(app: Sphinx, what: str, name: str, thing: object, options: object, lines: list[str]) -> None:
    """Stop napoleon from reading 'Length: the number of tokens' as a type and a description.

    Types stand in annotations here, never in docstrings.
    """
    if what in HAS_NO_TYPE_PREFIX:
        lines[:0] = ["..", ""]  # an empty comment: napoleon looks at the first line alone
    if "Returns:" in lines:
        start = lines.index("Returns:")
        lines[start : start + 2] = [f":returns: {lines[start + 1].strip()}"]


def link_chapters(
    app: Sphinx, what: str, name: str, thing: object, options: object, lines: list[str]
) -> None:
    """Let 'chapter 3' lead there."""
    for place, line in enumerate(lines):
        lines[place] = CHAPTER.sub(lambda it: f":doc:`{it[1]} </notebooks/{CHAPTERS[int(it[2])]}>`", line)


def shorten_defaults(
    app: Sphinx,
    what: str,
    name: str,
    thing: object,
    options: object,
    signature: str | None,
    returns: str | None,
) -> tuple[str | None, str | None]:
    """Write defaults that are not Python, such as <factory>, as dots."""
    while signature and signature != (shorter := re.sub(r"<[^<>]*>", "...", signature)):
        signature = shorter
    return signature, returns


def shorten_values(app: Sphinx, domain: str, kind: str, content: addnodes.desc_content) -> None:
    """Leave out the values of constants that are long or not Python."""
    signatures = [node for node in content.parent if isinstance(node, addnodes.desc_signature)]
    for signature in signatures:
        for node in [*signature.findall(addnodes.desc_annotation)]:
            words = node.astext()
            if words.startswith(" = ") and (len(words) > LONGEST_VALUE or re.search(r"<|Path\(", words)):
                node.parent.remove(node)


def find_by_last_name(
    app: Sphinx, env: BuildEnvironment, node: addnodes.pending_xref, contnode: nodes.TextElement
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
    """Run what changes docstrings before napoleon, and the search for a name when Sphinx found nothing."""
    app.connect("autodoc-process-docstring", keep_colon, priority=400)
    app.connect("autodoc-process-docstring", link_chapters, priority=400)
    app.connect("autodoc-process-signature", shorten_defaults)
    app.connect("object-description-transform", shorten_values)
    app.connect("missing-reference", find_by_last_name)
