"""Findings that are waived, each with its reason. Whoever removes a cause removes its line.

A line that waives nothing any more fails the tests, so none outlives its cause.
"""

import re
from collections.abc import Container
from dataclasses import dataclass


@dataclass(frozen=True)
class Known:
    """A finding that is waived: its kind, regular expressions for page and sentence, and why."""

    kind: str
    page: str
    sentence: str
    reason: str

    def covers(self, kind: str, page: str, sentence: str) -> bool:
        """Whether this is the finding."""
        return kind == self.kind and bool(re.search(self.page, page) and re.search(self.sentence, sentence))


def of_chapters(chapters: tuple[str, ...], sentence: str, reason: str) -> list[Known]:
    """One waiver for the figures of each chapter, so that none outlives its cause."""
    return [Known("figures", f"^notebooks/{chapter}_", sentence, reason) for chapter in chapters]


KNOWN: tuple[Known, ...] = (
    *of_chapters(
        ("02", "03", "07", "16"),
        r"^#[34]\w[0-5]\w[45678]\w .* in dark",
        "the dark end of viridis: areas of maps",
    ),
    *of_chapters(("13",), r"^#[567]\w[345]\w[567]\w .* in dark", "the dark end of viridis over a grey photo"),
    *of_chapters(
        ("11",),
        r"^#(0e3256|323246|2a1a0e|161e2[ae]|0e1622|6a6a6e) .* in dark",
        "pixels of photos",
    ),
    *of_chapters(("01",), r"^#[bc]\w[9a]\w[789]\w .* in light", "pixels of photos"),
    *of_chapters(("02",), r"^#(4eba6e|52ae7a) .* in light", "the green of viridis: areas of a map"),
    *of_chapters(("03",), r"^#265676 .* in dark", "the dark end of blue: areas of a map"),
)


def unknown(findings: dict[str, list[str]], kind: str) -> list[str]:
    """The findings of a kind that nothing waives, as "page: sentence"."""
    return [
        f"{page}: {sentence}"
        for page, sentences in findings.items()
        for sentence in sentences
        if not any(known.covers(kind, page, sentence) for known in KNOWN)
    ]


_used: set[Known] = set()


def check(findings: dict[str, list[str]], kind: str, called: str = "") -> None:
    """Fail with the findings of a kind that nothing waives; what waived one is remembered as used."""
    _used.update(
        known
        for known in KNOWN
        for page, sentences in findings.items()
        for sentence in sentences
        if known.covers(kind, page, sentence)
    )
    found = unknown(findings, kind)
    assert not found, f"{len(found)} findings ({called or kind}):\n" + "\n".join(found[:60])


def unused(kinds: Container[str]) -> list[str]:
    """Pages and reasons of lines of these kinds that have waived nothing that was checked."""
    unused = (known for known in KNOWN if known.kind in kinds and known not in _used)
    return [f"{known.page}: {known.reason}" for known in unused]
