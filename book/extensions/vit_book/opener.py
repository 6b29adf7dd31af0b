"""How a chapter opens: its part, number and title beside its place in the model, then a strip of facts.

The strip is made of the line that every chapter has at its head: **Needs** ... · **Time** ... · **Code** ...
And from each box "Your turn" a link leads to the cell of the exercise notebook that the answer goes into.
"""

import json
import re
from html import escape
from typing import Any

from docutils import nodes
from project_facts import ROOT, chapter_number, read_repository
from sphinx.application import Sphinx

from vit_book.place import PLACES, place_drawing

PARTS = {
    "part_1_build": "Part I · Build it",
    "part_2_train": "Part II · Train it",
    "part_3_inspect": "Part III · Look inside",
}
TITLE = re.compile(r"<h1>(\d+)\. (.*?)</h1>", re.DOTALL)
SEPARATOR = "·"


def part_of(number: int) -> str:
    """The page of the part that a chapter belongs to."""
    if number <= 7:
        return "part_1_build"
    return "part_2_train" if number <= 12 else "part_3_inspect"


def facts(line: nodes.paragraph) -> list[list[nodes.Node]]:
    """Split a line at its dots; each piece begins with the name in bold.

    >>> needs, time = nodes.strong("", "Needs"), nodes.strong("", "Time")
    >>> line = nodes.paragraph("", "", needs, nodes.Text(" a · "), time)
    >>> [[node.astext() for node in piece] for piece in facts(line)]
    [['Needs', ' a '], ['Time']]
    """
    pieces: list[list[nodes.Node]] = [[]]
    for node in line.children:
        if not isinstance(node, nodes.Text):
            pieces[-1].append(node)
            continue
        for place, text in enumerate(node.astext().split(SEPARATOR)):
            if place:
                pieces.append([])
            if text.strip():
                pieces[-1].append(nodes.Text(text))
    return [piece for piece in pieces if piece]


def addresses(docname: str) -> str:
    """Links to the chapter and its exercises in Colab, and to both as files."""
    repository, name = read_repository(), docname.rsplit("/", 1)[-1]
    links = {
        "Open in Colab": repository.colab_url(f"notebooks/{name}.ipynb"),
        "Exercises in Colab": repository.colab_url(f"exercises/{name}.ipynb"),
        "Download": f"../_sources/notebooks/{name}.ipynb",
        "Download exercises": repository.raw_url(f"exercises/{name}.ipynb"),
    }
    return "".join(
        f'<a class="reference{" external" if "://" in address else ""}" href="{escape(address)}"'
        f"{'' if '://' in address else ' download'}>{text}</a>"
        for text, address in links.items()
    )


def build_strip(app: Sphinx, doctree: nodes.document, docname: str) -> None:
    """Make the line of facts a strip below the chapter's first paragraph."""
    if app.builder.format != "html" or chapter_number(docname) is None:
        return
    section = next(doctree.findall(nodes.section))
    paragraphs = [node for node in section.children if isinstance(node, nodes.paragraph)]
    line = next((node for node in paragraphs if node.astext().startswith("Needs")), None)
    if line is None:
        return
    section.remove(line)
    strip = nodes.container(classes=["strip"])
    for name, *rest in facts(line):
        if name.astext() == "Exercises":  # among the links below
            continue
        fact = nodes.container(classes=["fact"])
        fact += nodes.paragraph("", "", nodes.Text(name.astext()), classes=["fact-name"])
        fact += nodes.paragraph("", "", *rest)
        strip += fact
    strip += nodes.raw("", f'<p class="get">{addresses(docname)}</p>', format="html")
    section.insert(2, strip)
    section[1]["classes"].append("lead")


def link_answers(app: Sphinx, doctree: nodes.document, docname: str) -> None:
    """End each box "Your turn" with a link that opens its cell in Colab."""
    if app.builder.format != "html" or chapter_number(docname) is None:
        return
    name = docname.rsplit("/", 1)[-1]
    notebook = json.loads((ROOT / "exercises" / f"{name}.ipynb").read_text(encoding="utf-8"))
    cells = {
        cell["metadata"]["nbgrader"]["grade_id"]: cell["metadata"]["id"]
        for cell in notebook["cells"]
        if "nbgrader" in cell["metadata"]
    }
    for box in doctree.findall(nodes.admonition):
        if "your-turn" in box["classes"]:
            task = next(box[0].findall(nodes.literal)).astext()
            address = read_repository().colab_url(f"exercises/{name}.ipynb#scrollTo={cells[task]}")
            link = nodes.reference("", "Write it in Colab", refuri=address, internal=False)
            box += nodes.paragraph("", "", link, classes=["get"])


def open_chapter(
    app: Sphinx, pagename: str, templatename: str, context: dict[str, Any], doctree: nodes.document | None
) -> None:
    """Put part, number, title and place at the head of a chapter's page."""
    number = chapter_number(pagename)
    if number is None or number not in PLACES or "body" not in context:
        return
    page = part_of(number)
    link = f'<a class="reference internal" href="../book/{page}.html">{PARTS[page]}</a>'

    def opener(title: re.Match[str]) -> str:
        heading = f'<h1><span class="opener-number">{title[1]}.</span> {title[2]}</h1>'
        words = f'<div><p class="opener-part">{link}</p>{heading}</div>'
        return f'<header class="opener">{words}{place_drawing(number)}</header>'

    context["body"] = TITLE.sub(opener, context["body"], count=1)


def setup(app: Sphinx) -> None:
    """Run when references are resolved, and when the page is written."""
    app.connect("doctree-resolved", build_strip, priority=800)
    app.connect("doctree-resolved", link_answers, priority=800)
    app.connect("html-page-context", open_chapter, priority=800)
