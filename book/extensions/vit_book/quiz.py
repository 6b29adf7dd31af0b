"""The directive `quiz`: a question, and four answers that say, once opened, why they are right or wrong.

It needs no script, and keys and screen readers know what a folded answer is.
"""

from chapter_export.markup import ExportError
from chapter_export.quiz import answers_of
from docutils import nodes
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective


class Quiz(SphinxDirective):
    """`{quiz} QUESTION`, with the answers that `chapter_export.quiz` describes."""

    required_arguments = 1
    final_argument_whitespace = True
    has_content = True

    def run(self) -> list[nodes.Node]:
        """Write the question, then each answer as an HTML element that folds."""
        question = self.arguments[0]
        try:
            answers = answers_of(question, "\n".join(self.content))
        except ExportError as error:
            raise self.error(str(error)) from error
        written: list[nodes.Node] = [nodes.paragraph("", "", *self._line(question), classes=["question"])]
        for answer in answers:
            kind = "right" if answer.right else "wrong"
            written += [
                nodes.raw("", f'<details class="{kind}"><summary>', format="html"),
                nodes.inline("", "", *self._line(answer.text)),
                nodes.raw("", f"</summary><p><strong>{answer.verdict}</strong> ", format="html"),
                nodes.inline("", "", *self._line(answer.reason)),
                nodes.raw("", "</p></details>", format="html"),
            ]
        return [nodes.container("", *written, classes=["quiz"])]

    def _line(self, text: str) -> list[nodes.Node]:
        parsed, messages = self.parse_inline(text)
        return parsed + messages


def setup(app: Sphinx) -> None:
    """Register the directive."""
    app.add_directive("quiz", Quiz)
