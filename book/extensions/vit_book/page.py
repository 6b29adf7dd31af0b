"""What is taken from, and added to, the HTML that the theme makes of a page."""

from typing import Any

from docutils import nodes
from project_facts import chapter_number
from sphinx.application import Sphinx


def drop_thebe_settings(app: Sphinx, doctree: nodes.document, docname: str) -> None:
    """Leave out the settings for live code that stand in the page itself."""
    for node in list(doctree.findall(nodes.raw)):
        if "thebe" in node.astext() or node.astext().strip().startswith("<script>kernelName"):
            node.parent.remove(node)


def _told_by(file: Any) -> str:
    """The name of a script or style sheet, and the text of a script that stands in the page itself."""
    body = getattr(file, "attributes", {}).get("body", "")
    return f"{getattr(file, 'filename', file)} {body}".lower()


def finish_page(
    app: Sphinx, pagename: str, templatename: str, context: dict[str, Any], doctree: nodes.document | None
) -> None:
    """Leave out the scripts for live code; show Colab as one button with its name, not as a menu of one.

    The scripts would load from another host, and they raise a page error. A page that is no chapter has no
    notebook to open.
    """
    for kind in ("script_files", "css_files"):
        context[kind] = [file for file in context.get(kind, []) if "thebe" not in _told_by(file)]
    if chapter_number(pagename) is None:
        shown = context.get("header_buttons", [])
        context["header_buttons"] = [one for one in shown if one.get("label") != "launch-buttons"]
    for place, button in enumerate(context.get("header_buttons", [])):
        if button.get("label") == "launch-buttons" and len(button["buttons"]) == 1:
            colab = {"text": "Colab", "tooltip": "Open this chapter in Colab", "label": "colab-button"}
            context["header_buttons"][place] = {**button["buttons"][0], **colab}


def setup(app: Sphinx) -> None:
    """Run after the theme and its companions have added what they add."""
    app.connect("html-page-context", finish_page, priority=900)
    app.connect("doctree-resolved", drop_thebe_settings, priority=900)
