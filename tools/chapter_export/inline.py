"""Roles, links and images of running text -> Markdown that every notebook viewer shows."""

import os.path
from collections.abc import Callable, Iterable
from itertools import chain

from markdown_it.token import Token
from project_facts import chapter_number, split_title, time_text

from chapter_export.catalogue import Catalogue
from chapter_export.markup import ExportError


class InlineWriter:
    """Rewrite the inline elements of one chapter."""

    def __init__(self, catalogue: Catalogue, chapter: str) -> None:
        self.catalogue, self.chapter = catalogue, chapter
        self.roles: dict[str, Callable[[str], str]] = {
            "doc": self.document,
            **dict.fromkeys(("ref", "numref", "eq"), self.reference),
            **dict.fromkeys(("cite", "cite:p"), lambda keys: f"({self.cited(keys, '{}, {}', '; ')})"),
            "cite:t": lambda keys: self.cited(keys, "{} ({})", ", "),
            "source": self.source,
            "minutes": lambda chapter: time_text(chapter, catalogue.root),
            "math": lambda formula: f"${formula}$",
            "term": lambda term: split_title(term)[0] or term,
            **dict.fromkeys(("class", "func", "py:class", "py:func", "py:meth", "py:mod"), _python_name),
        }

    def rewrite(self, raw: str, tokens: Iterable[Token]) -> str:
        """Replace, in the raw text of a block, every element that plain Markdown does not know.

        Elements are found again in the order in which the parser met them, so that the same characters
        inside a piece of code stay as they are.
        """
        written, cursor = [], 0
        for token in chain.from_iterable(token.children or [] for token in tokens if token.type == "inline"):
            source = token.meta.get("raw") if token.meta else None
            if source is None:
                continue
            start = raw.find(source, cursor)
            if start < 0:
                raise ExportError(f"write {source!r} on one line.")
            end = start + len(source)
            replacement = self._replacement(token, source)
            if token.type == "link_open" and replacement == source:
                end = start + 1  # the text of a link may hold more elements
                replacement = source[0]
            written += [raw[cursor:start], replacement]
            cursor = end
        return "".join([*written, raw[cursor:]])

    def _replacement(self, token: Token, source: str) -> str:
        if token.type == "myst_role":
            name = token.meta["name"]
            if name not in self.roles:
                raise ExportError(f"the exporter does not know the role {{{name}}}.")
            return self.roles[name](token.content)
        if token.type == "link_open":
            return self.link(source, str(token.attrs["href"]))
        if token.type == "image":
            return self.image(token.content, str(token.attrs["src"]))
        return source

    def document(self, content: str) -> str:
        """{doc}: a link to the sibling notebook, or to a page of the book where it is hosted."""
        text, name = split_title(content)
        if chapter_number(name) is None:
            path = os.path.normpath(f"notebooks/{name}.md")
            if not (self.catalogue.root / path).exists():
                raise ExportError(f"{{doc}}: there is no {path}.")
            heading = (self.catalogue.root / path).read_text(encoding="utf-8").partition("# ")[2]
            return f"[{text or heading.splitlines()[0]}]({self.catalogue.repository.file_url(path)})"
        if name not in self.catalogue.titles:
            raise ExportError(f"there is no chapter {name}.")
        return f"[{text or self.catalogue.titles[name]}]({name}.ipynb)"

    def reference(self, content: str) -> str:
        """{ref}, {numref}, {eq}: the number or title of what is meant, linked if another chapter has it."""
        text, label = split_title(content)
        target = self.catalogue.labels.get(label)
        if target is None:
            raise ExportError(f"there is no label {label} in any chapter.")
        text = text or target.text
        if not text:
            raise ExportError(f"a reference to {label} needs a text: [text](#{label}).")
        return text if target.chapter == self.chapter else f"[{text}]({target.chapter}.ipynb)"

    def cited(self, keys: str, form: str, between: str) -> str:
        """{cite}: authors and year of some works in a form, each a link to the work."""
        found = (self.catalogue.citation(key.strip()) for key in keys.split(","))
        return between.join(f"[{form.format(authors, year)}]({address})" for authors, year, address in found)

    def source(self, content: str) -> str:
        """{source}: a file where it is hosted."""
        text, path = split_title(content)
        if not (self.catalogue.root / path).exists():
            raise ExportError(f"{{source}}: there is no {path}.")
        return f"[`{text or path}`]({self.catalogue.repository.file_url(path)})"

    def link(self, source: str, address: str) -> str:
        """Links inside the book; those that lead out of it stay as they are."""
        if address.startswith(("http:", "https:", "mailto:")):
            return source
        text = source[1 : source.rindex("](")]
        name, _, anchor = address.partition("#")
        point, target = (self.document, name.removesuffix(".md")) if name else (self.reference, anchor)
        return point(f"{text} <{target}>" if text else target)

    def image(self, alt: str, address: str) -> str:
        """A picture of the repository, by its full address: the notebook travels alone."""
        if not alt.strip():
            raise ExportError(f"the image {address} has no alternative text.")
        if not address.startswith(("http:", "https:")):
            path = os.path.normpath(f"notebooks/{address}")
            if not (self.catalogue.root / path).exists():
                raise ExportError(f"there is no image {path}.")
            address = self.catalogue.repository.raw_url(path)
        return f"![{alt}]({address})"


def _python_name(name: str) -> str:
    """A name of the package as code; a leading ~ asks for its last part alone."""
    return f"`{name.rsplit('.', 1)[-1]}`" if name.startswith("~") else f"`{name}`"
