"""Read MyST by token: blocks, directives with their options, and where inline elements stand in the text."""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import yaml
from markdown_it import MarkdownIt
from markdown_it.rules_inline import StateInline
from markdown_it.token import Token
from mdit_py_plugins.amsmath import amsmath_plugin
from mdit_py_plugins.colon_fence import colon_fence_plugin
from mdit_py_plugins.deflist import deflist_plugin
from mdit_py_plugins.dollarmath import dollarmath_plugin
from mdit_py_plugins.myst_blocks import myst_block_plugin
from mdit_py_plugins.myst_role import myst_role_plugin

DIRECTIVE = re.compile(r"\{([\w:.-]+)\}\s*(.*)", re.DOTALL)
# Rules of the inline parser whose matches we must find again in the raw text, and the token that each makes.
RECORDED = {"myst_role": "myst_role", "link": "link_open", "image": "image", "backticks": "code_inline"}


class ExportError(ValueError):
    """A chapter holds something that the exporter cannot turn into plain Markdown."""


@dataclass(frozen=True)
class Directive:
    """A directive as written: its name, what stands behind the name, its options, the text it encloses."""

    name: str
    argument: str
    options: dict[str, str]
    body: str

    @property
    def classes(self) -> list[str]:
        """The words of its `:class:` option."""
        return str(self.options.get("class", "")).split()


def parser() -> MarkdownIt:
    """Make a parser for the syntax that `_config.yml` enables, which records where inline elements stand."""
    markdown = (
        MarkdownIt("commonmark")
        .enable("table")
        .use(myst_block_plugin)
        .use(myst_role_plugin)
        .use(colon_fence_plugin)
        .use(deflist_plugin)
        .use(amsmath_plugin)
        .use(dollarmath_plugin, allow_labels=True, allow_space=True, allow_digits=True, double_inline=True)
    )
    for rule in markdown.inline.ruler.__rules__:
        if rule.name in RECORDED:
            markdown.inline.ruler.at(rule.name, _recording(rule.fn, RECORDED[rule.name]))
    return markdown


def _recording(
    rule: Callable[[StateInline, bool], bool], token_type: str
) -> Callable[[StateInline, bool], bool]:
    """Wrap an inline rule so that the token it makes remembers which characters it was made of."""

    def wrapped(state: StateInline, silent: bool) -> bool:
        start, count = state.pos, len(state.tokens)
        matched = rule(state, silent)
        if matched and not silent:
            made = next((token for token in state.tokens[count:] if token.type == token_type), None)
            if made is not None:
                made.meta = {**made.meta, "raw": state.src[start : state.pos]}
        return matched

    return wrapped


def directive_of(token: Token) -> Directive | None:
    """Read the directive that a fence token holds; None for a plain block of code."""
    match = DIRECTIVE.fullmatch(token.info.strip())
    if match is None:
        return None
    options, body = _split_options(token.content)
    return Directive(name=match[1], argument=match[2].strip(), options=options, body=body)


def _split_options(content: str) -> tuple[dict[str, str], str]:
    """Separate the options at the head of a directive from its text."""
    lines = content.splitlines()
    if lines and lines[0].strip() == "---":
        end = next((place for place, line in enumerate(lines[1:], start=1) if line.strip() == "---"), None)
        if end is None:
            raise ExportError("the options of a directive begin with --- and do not end with ---.")
        return yaml.safe_load("\n".join(lines[1:end])) or {}, "\n".join(lines[end + 1 :]).strip("\n")
    options: dict[str, str] = {}
    for place, line in enumerate(lines):
        match = re.fullmatch(r":([\w-]+):(?:\s+(.*))?", line.strip())
        if match is None:
            return options, "\n".join(lines[place:]).strip("\n")
        options[match[1]] = (match[2] or "").strip()
    return options, ""


def check_closed(token: Token, lines: list[str], name: str) -> None:
    """Refuse a directive that runs to the end of its cell: a code cell inside it has cut it in two."""
    assert token.map is not None
    start, end = token.map
    last = lines[end - 1].strip() if end <= len(lines) else ""
    if end - start < 2 or not last.startswith(token.markup) or last.strip(token.markup[0]):
        raise ExportError(
            f"{{{name}}} is not closed before the next cell; a code cell inside a solution or an exercise "
            "needs the gated form (solution-start, solution-end)."
        )


def leftovers(source: str) -> Iterator[str]:
    """Yield every directive, role, target or comment of MyST that a Markdown cell still holds."""
    for token in parser().parse(source):
        if token.type in ("myst_target", "myst_line_comment", "colon_fence", "math_block_label"):
            yield f"{token.type}: {token.content[:60]!r}"
        elif token.type == "fence" and token.info.strip().startswith("{"):
            yield f"directive {token.info.strip()}"
        for child in token.children or []:
            if child.type == "myst_role":
                yield f"role {{{child.meta['name']}}}"
