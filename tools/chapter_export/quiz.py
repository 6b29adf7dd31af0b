"""A question with four answers, a line each: `+` before the right one, `-` before the others, then why.

:::{quiz} Which numbers does LayerNorm average?
+ The D values of one token :: Each token has a mean and a spread of its own.
- The tokens of one image :: Then a token's values would depend on those of the others.
...
:::
"""

import re
from dataclasses import dataclass

from chapter_export.markup import ExportError

ANSWERS = 4
LINE = re.compile(r"([+-]) (.+?) :: (.+)")


@dataclass(frozen=True)
class Answer:
    """One of the answers, whether it is right, and why."""

    text: str
    right: bool
    reason: str

    @property
    def verdict(self) -> str:
        """The word that an opened answer begins with."""
        return "Right." if self.right else "No."


def answers_of(question: str, body: str) -> list[Answer]:
    """Read a question's answers; an `ExportError` unless they are four, each with a reason, one right."""
    found = [LINE.fullmatch(line.strip()) for line in body.splitlines() if line.strip()]
    answers = [Answer(match[2], match[1] == "+", match[3]) for match in found if match]
    if len(answers) != len(found) or len(found) != ANSWERS or sum(answer.right for answer in answers) != 1:
        raise ExportError(
            f"the quiz {question!r}: expected {ANSWERS} lines `- answer :: reason`, and `+` before the one "
            f"that is right; got {len(found)} lines, {sum(answer.right for answer in answers)} of them right."
        )
    return answers
