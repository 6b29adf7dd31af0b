"""The directive `claims`: what the paper and the write-ups say, beside what our results say to it.

Each claim of book/claims.toml is turned into differences that it says are above zero, or none (`alike`), each
with an interval of 95 %; one rule gives the verdict for all of them.
"""

import tomllib
from collections.abc import Sequence
from dataclasses import replace
from html import escape
from typing import TYPE_CHECKING, Any

from docutils import nodes
from project_facts import ROOT
from sphinx.application import Sphinx
from sphinx.errors import ExtensionError
from sphinx.util.docutils import SphinxDirective

if TYPE_CHECKING:
    from vit_book.evidence import Difference

FILE = ROOT / "book" / "claims.toml"
HOLDS, IN_PART, NOT_SEEN = "holds here", "holds in part", "not seen here"
WITHOUT = ("cannot be tested at this size", "not run yet")
VERDICTS = {HOLDS: "✓", IN_PART: "◐", NOT_SEEN: "✗", WITHOUT[0]: "–", WITHOUT[1]: "…"}
"""In the order in which the page sorts them, each with its sign."""


def verdict_of(found: Sequence["Difference"]) -> str:
    """Judge a claim by its differences: each has to be seen, see `Difference.seen`.

    >>> from vit_book.evidence import Difference
    >>> above, level = Difference("", 2, 1, 3), Difference("", 0, -1, 1)
    >>> verdict_of([above]), verdict_of([above, level]), verdict_of([level])
    ('holds here', 'holds in part', 'not seen here')
    """
    seen = sum(one.seen for one in found)
    return HOLDS if seen == len(found) else IN_PART if seen else NOT_SEEN


def read_claims() -> list[dict[str, Any]]:
    """Read the claims, each with the differences that were `found`, and what `ran` for them.

    Raises:
        ExtensionError: a result gives another verdict than the file says, or a claim without evidence has
            one.
    """
    from vit_book.evidence import differences, told  # takes a second, and most builds need none of it

    claims = tomllib.loads(FILE.read_text(encoding="utf-8"))["claims"]
    for claim in claims:
        found = claim["found"] = [
            replace(one, alike=evidence.get("alike", False))
            for evidence in claim.get("evidence", [])
            for one in differences(evidence)
        ]
        claim["ran"] = list(dict.fromkeys(map(told, claim.get("evidence", []))))
        expected = (verdict_of(found),) if found else WITHOUT
        if claim["verdict"] not in expected or not claim["why"]:
            raise ExtensionError(
                f"{FILE.name}, {claim['says']!r}: the file says {claim['verdict']!r}, the results say "
                f"{' or '.join(expected)!r}: expected the same, and a sentence why. Write both anew."
            )
    return claims


def claims_html(claims: Sequence[dict[str, Any]]) -> str:
    """Write the claims in HTML: two ways of sorting, then an article for each."""
    count = {verdict: sum(claim["verdict"] == verdict for claim in claims) for verdict in VERDICTS}
    summary = ", ".join(f"{verdict} {number}" for verdict, number in count.items() if number)
    orders = (("by-verdict", "by verdict"), ("as-told", "as the paper tells them"))
    choices = "".join(
        f'<label><input type="radio" name="order" id="{name}"{" checked" * (not place)}> {words}</label>'
        for place, (name, words) in enumerate(orders)
    )
    told = sorted(enumerate(claims), key=lambda numbered: list(VERDICTS).index(numbered[1]["verdict"]))
    articles = "".join(article(claim, number) for number, claim in told)
    return (
        f'<p class="claims-count">{len(claims)} claims: {summary}.</p>'
        f'<fieldset class="claims-order"><legend>Order</legend>{choices}</fieldset>'
        f'<div class="claims">{articles}</div>'
    )


def article(claim: dict[str, Any], told: int) -> str:
    """Write a claim: the sentence, the verdict, a picture of its differences, why, and what was run.

    `told` is its place in the paper's order, for those who ask for that.
    """
    verdict, found = claim["verdict"], claim["found"]
    place = list(VERDICTS).index(verdict)
    badge = f'<span class="verdict"><span aria-hidden="true">{VERDICTS[verdict]}</span> {verdict}</span>'
    ran = "".join(f"<li>{words}</li>" for words in claim["ran"])
    means = [(one.label, *one.reached) for one in found if one.reached]
    reached = "; ".join(f"{label or 'all'} {ours:.1f} and {others:.1f} %" for label, ours, others in means)
    ran += f"<li>accuracies, the side first named first: {escape(reached)}</li>" if reached else ""
    limits = f"<p>{escape(claim['limits'])}</p>" if "limits" in claim else ""
    head = "What we ran, and what it leaves open" if limits else "What we ran"
    below = f"<details><summary>{head}</summary><ul>{ran}</ul>{limits}</details>" if ran else ""
    return (
        f'<article class="claim verdict-{place}" style="--told: {told}"><h3>{escape(claim["says"])}</h3>'
        f'<p class="claim-where">{badge} <span>{escape(claim["where"])}</span></p>'
        f"{picture(found, claim.get('paper')) if found else ''}"
        f"<p>{escape(claim['why'])}</p>{below}</article>"
    )


def picture(found: Sequence["Difference"], paper: float | None = None) -> str:
    """Draw differences, one below the other: a mark, its interval, zero, and what the source reports.

    Those in one unit share a scale, the source's with those in points.
    """
    drawn = []
    for unit in dict.fromkeys(one.unit for one in found):
        rows = _rows([one for one in found if one.unit == unit], paper if unit == "points" else None)
        drawn.append(f'<div class="differences">{rows}</div>')
    return "".join(drawn)


def _rows(found: Sequence["Difference"], paper: float | None) -> str:
    marks = [*(bound for one in found for bound in (one.low, one.high)), 0.0, *([paper] if paper else [])]
    low, high = min(marks), max(marks)
    margin = 0.06 * (high - low)
    scale = 100 / (high - low + 2 * margin)

    def at(value: float) -> str:
        return f"{(value - low + margin) * scale:.2f}%"

    def row(name: str, drawn: str, number: str) -> str:
        zero = f'<line class="zero" x1="{at(0)}" x2="{at(0)}" y1="0" y2="100%"/>'
        strip = f'<svg aria-hidden="true" height="22" width="100%">{zero}{drawn}</svg>'
        return f'<div class="row"><span>{escape(name)}</span>{strip}<span>{number}</span></div>'

    rows = [
        row(
            one.label,
            f'<line class="interval" x1="{at(one.low)}" x2="{at(one.high)}" y1="11" y2="11"/>'
            f'<circle cx="{at(one.mean)}" cy="11" r="4.5"/>',
            one.words,
        )
        for one in found
    ]
    if paper:
        drawn = f'<circle class="source" cx="{at(paper)}" cy="11" r="4.5"/>'
        rows.append(row("the source reports", drawn, f"{paper:+.1f} points"))
    return "".join(rows)


class Claims(SphinxDirective):
    """`{claims}`: all of book/claims.toml."""

    def run(self) -> list[nodes.Node]:
        """Write the page's list, anew when a result or the file changes."""
        for file in (FILE, *ROOT.glob("vit_lab/results/*")):
            self.env.note_dependency(str(file))
        return [nodes.raw("", claims_html(read_claims()), format="html")]


def setup(app: Sphinx) -> None:
    """Register the directive."""
    app.add_directive("claims", Claims)
