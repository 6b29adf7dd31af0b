"""References as the paper writes them: Vaswani et al. (2017), or (Vaswani et al., 2017)."""

from dataclasses import dataclass, field

from sphinx.application import Sphinx
from sphinxcontrib.bibtex.plugin import register_plugin
from sphinxcontrib.bibtex.style.referencing import BracketStyle
from sphinxcontrib.bibtex.style.referencing.author_year import AuthorYearReferenceStyle


def _round() -> BracketStyle:
    return BracketStyle(left="(", right=")")


@dataclass
class AuthorYearRound(AuthorYearReferenceStyle):
    """The library's author-year style with round brackets in place of square ones."""

    bracket_parenthetical: BracketStyle = field(default_factory=_round)
    bracket_textual: BracketStyle = field(default_factory=_round)
    bracket_author: BracketStyle = field(default_factory=_round)
    bracket_label: BracketStyle = field(default_factory=_round)
    bracket_year: BracketStyle = field(default_factory=_round)


def setup(app: Sphinx) -> None:
    """Offer the style under the name that `_config.yml` uses."""
    group = "sphinxcontrib.bibtex.style.referencing"
    register_plugin(group, "author_year_round", AuthorYearRound)
