"""Findings that are waived, each with its reason. Whoever removes a cause removes its line.

A line that waives nothing any more fails the tests, so none outlives its cause.
"""

import re
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


KNOWN: tuple[Known, ...] = (
    Known(
        "figures",
        "",
        r"^#(?!7[4-9a-f]7[4-9a-f]7[4-9a-f] )",
        "areas, whose edges need not be seen: ends of viridis, pale bars, edges of small letters",
    ),
)


def unknown(findings: dict[str, list[str]], kind: str) -> list[str]:
    """The findings of a kind that nothing waives, as "page: sentence"."""
    return [
        f"{page}: {sentence}"
        for page, sentences in findings.items()
        for sentence in sentences
        if not any(known.covers(kind, page, sentence) for known in KNOWN)
    ]
