"""Directives, equations and everything else that fills whole lines -> Markdown."""

import base64
from collections.abc import Callable
from dataclasses import replace

from drawings import WIDGETS, picture_path, still, words
from markdown_it import MarkdownIt
from markdown_it.token import Token

from chapter_export.catalogue import Catalogue
from chapter_export.inline import InlineWriter
from chapter_export.markup import Directive, ExportError, check_closed, directive_of, parser
from chapter_export.quiz import answers_of

ADMONITIONS = ("note", "tip", "hint", "important", "warning", "caution", "attention", "seealso")
SIDE_NOTE = "Side note"


def details(summary: str, body: str) -> str:
    """Fold text away; blank lines make viewers read it as Markdown, the summary must be HTML."""
    line = MarkdownIt("commonmark").renderInline(summary)
    return f"<details>\n<summary>{line}</summary>\n\n{body.strip()}\n\n</details>"


def quote(title: str, body: str) -> str:
    """An admonition: a block quotation under a bold title."""
    lines = [f"**{title}**", "", *body.strip().splitlines()]
    return "\n".join(f"> {line}".rstrip() for line in lines)


class BlockWriter:
    """Rewrite the blocks of one chapter."""

    def __init__(self, catalogue: Catalogue, chapter: str) -> None:
        self.catalogue = catalogue
        self.chapter = chapter
        self.inline = InlineWriter(catalogue, chapter)
        self.parser = parser()
        self.equations = iter(catalogue.numbers("equation", chapter))
        self.exercises = iter(catalogue.numbers("exercise", chapter))
        self.directives: dict[str, Callable[[Directive], str]] = {
            **dict.fromkeys(("admonition", *ADMONITIONS), self.admonition),
            "dropdown": self.dropdown,
            "margin": self.margin,
            "quiz": self.quiz,
            **dict.fromkeys(("exercise", "exercise-start"), self.exercise),
            "exercise-end": lambda directive: "",
            "math": self.math,
            **dict.fromkeys(("figure", "image"), self.figure),
            "drawing": self.drawing,
            "widget": self.widget,
            "code-block": lambda directive: f"```{directive.argument}\n{directive.body}\n```",
        }

    def convert(self, source: str) -> str:
        """Rewrite a piece of MyST."""
        return "\n\n".join(text for _, text in self.pieces(source) if text)

    def pieces(self, source: str) -> list[tuple[Directive | None, str]]:
        """Rewrite block by block; gates of solutions are handed back unwritten, with their directive."""
        lines = source.splitlines()
        tokens = self.parser.parse(source)
        starts = [place for place, token in enumerate(tokens) if token.level == 0 and token.nesting >= 0]
        written: list[tuple[Directive | None, str]] = []
        for start, end in zip(starts, [*starts[1:], len(tokens)], strict=True):
            block = tokens[start]
            if block.map is None:
                raise ExportError(f"the exporter does not know blocks of the kind {block.type}.")
            raw = "\n".join(lines[block.map[0] : block.map[1]]).strip("\n")
            directive = directive_of(block) if block.type in ("fence", "colon_fence") else None
            if directive is not None:
                check_closed(block, lines, directive.name)
            if directive is not None and directive.name in ("solution-start", "solution-end"):
                written.append((directive, ""))
            elif directive is not None and directive.name == "solution":
                gates = [replace(directive, name=f"solution-{side}") for side in ("start", "end")]
                written += [(gates[0], ""), (None, self.convert(directive.body)), (gates[1], "")]
            elif directive is not None and directive.name not in self.directives:
                raise ExportError(f"the exporter does not know the directive {{{directive.name}}}.")
            elif directive is not None:
                written.append((None, self.directives[directive.name](directive)))
            else:
                written.append((None, self._block(raw, tokens[start:end])))
        return written

    def _block(self, raw: str, tokens: list[Token]) -> str:
        kind = tokens[0].type
        if kind in ("myst_target", "myst_line_comment", "myst_block_break"):
            return ""
        if kind == "math_block_label":
            return self._equation(tokens[0].content, tokens[0].info)
        first = raw.splitlines()[0]
        for token in tokens[1:]:
            nested = directive_of(token) if token.type in ("fence", "colon_fence") else None
            if nested is not None or token.type in ("math_block_label", "myst_target"):
                raise ExportError(f"a directive or label inside a list or quotation: {first!r}.")
        if kind == "dl_open":
            raise ExportError(f"a definition list, which notebooks do not show: {first!r}.")
        if kind == "colon_fence":
            raise ExportError(f"a colon fence without a directive: {first!r}.")
        return self.inline.rewrite(raw, tokens)

    def _text(self, text: str) -> str:
        """Rewrite one line, such as a title."""
        return self.inline.rewrite(text, self.parser.parse(text))

    def admonition(self, directive: Directive) -> str:
        """An admonition, folded if its class says dropdown; a bare {note} takes its name as title."""
        titled = directive.name == "admonition"
        title = self._text(directive.argument) if titled else directive.name.capitalize()
        body = self.convert(directive.body if titled else f"{directive.argument}\n{directive.body}")
        return details(title, body) if "dropdown" in directive.classes else quote(title, body)

    def dropdown(self, directive: Directive) -> str:
        """Folded text under its title."""
        return details(self._text(directive.argument), self.convert(directive.body))

    def margin(self, directive: Directive) -> str:
        """A side note: notebooks have no margin, so a quotation under a title that says what it is."""
        return quote(f"{SIDE_NOTE}: {self._text(directive.argument)}", self.convert(directive.body))

    def quiz(self, directive: Directive) -> str:
        """A question, each of its answers folded over the reason why it is right or wrong."""
        answers = answers_of(directive.argument, directive.body)
        folded = [
            details(self._text(one.text), f"**{one.verdict}** {self._text(one.reason)}") for one in answers
        ]
        return "\n\n".join((f"**{self._text(directive.argument)}**", *folded))

    def exercise(self, directive: Directive) -> str:
        """A heading with the number that the book shows, then the task."""
        number = "Exercise" if "nonumber" in directive.options else next(self.exercises)
        title = f": {self._text(directive.argument)}" if directive.argument else ""
        return f"### {number}{title}\n\n{self.convert(directive.body)}".strip()

    def math(self, directive: Directive) -> str:
        """A displayed equation, numbered where it has a label."""
        formula = "\n".join(part for part in (directive.argument, directive.body) if part)
        return self._equation(formula, directive.options.get("label", ""))

    def _equation(self, formula: str, label: str) -> str:
        tag = f" \\tag{{{next(self.equations).strip('()')}}}" if label else ""
        return f"$$\n{formula.strip()}{tag}\n$$"

    def figure(self, directive: Directive) -> str:
        """A picture and its caption."""
        picture = self.inline.image(directive.options.get("alt", ""), directive.argument)
        if not directive.body:
            return picture
        return f"{picture}\n\n{self.caption(directive.options.get('name', ''), directive.body)}"

    def caption(self, name: str, text: str) -> str:
        """What is said below a figure, in italics behind its number."""
        figure = self.catalogue.labels.get(name)
        if figure is None:
            raise ExportError(f"a figure with a caption needs a name: {text[:40]!r}.")
        return f"*{figure.text}: {self.convert(text)}*"

    def _picture(self, name: str, alt: str) -> str:
        """A picture inside the notebook, since Colab shows no attachments."""
        path = picture_path(name, self.catalogue.root)
        if not path.exists():
            raise ExportError(f"there is no picture {path.name}.")
        return f"![{alt}](data:image/png;base64,{base64.b64encode(path.read_bytes()).decode()})"

    def drawing(self, directive: Directive) -> str:
        """A drawing as a picture, and its caption."""
        name = directive.argument
        picture = self._picture(name, ". ".join(words(name, self.catalogue.root)))
        return f"{picture}\n\n{self.caption(f'drawing-{name}', directive.body)}"

    def widget(self, directive: Directive) -> str:
        """Something to touch: what to try, its still figure, where it is live, and what to notice."""
        name = f"{WIDGETS}/{directive.argument}"
        title, address = self.catalogue.titles[self.chapter], self.catalogue.repository.pages_url
        page = f"{address}/notebooks/{self.chapter}.html#vit-{directive.argument}"
        _, alt, caption = still(name, self.catalogue.root)
        figure = f"{self._picture(name, alt)}\n\n*{caption}*"
        first, _, rest = self.convert(directive.body).partition("\n\n")
        first = first.replace("**Try it.**", f"**Try it: live in the book, [{title}]({page}).**", 1)
        return "\n\n".join(filter(None, (first, figure, rest)))
