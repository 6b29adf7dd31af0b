"""A last look at what is written: nothing of MyST may remain."""

from collections.abc import Iterator

from chapter_export.markup import parser


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
