"""Number figures, tables, equations and exercises by chapter: the second equation of chapter 3 is (3.2).

Sphinx takes the first part of such numbers from numbered tables of contents, which would also number the
headings and cannot leave a gap for a chapter that is still to come. Here it comes from the file name.
"""

from project_facts import chapter_number
from sphinx.application import Sphinx
from sphinx.environment import BuildEnvironment

Numbers = dict[str, dict[str, dict[str, tuple[int, ...]]]]  # page -> kind -> id -> number


def number_by_chapter(plain: Numbers) -> Numbers:
    """Replace numbers that run through the whole book by numbers that start anew on every page."""
    numbered: Numbers = {}
    for page, kinds in plain.items():
        chapter = chapter_number(page)
        prefix = () if chapter is None else (chapter,)
        numbered[page] = {
            kind: {name: (*prefix, place) for place, name in enumerate(_in_order(kind, ids), start=1)}
            for kind, ids in kinds.items()
        }
    return numbered


def _in_order(kind: str, ids: dict[str, tuple[int, ...]]) -> list[str]:
    """Sort ids by Sphinx's number, without the paper's equations, which have a target but no label."""
    names = sorted(ids, key=ids.__getitem__)
    return [name for name in names if kind != "displaymath" or name.startswith("equation-")]


def restore_plain(app: Sphinx, env: BuildEnvironment) -> list[str]:
    """Give Sphinx back its own numbers of the last build, so that it sees which pages changed."""
    env.toc_fignumbers = getattr(env, "vit_plain_fignumbers", {})
    return []


def apply_chapters(app: Sphinx, env: BuildEnvironment) -> list[str]:
    """Set the numbers that the pages show."""
    env.vit_plain_fignumbers = env.toc_fignumbers
    env.toc_fignumbers = number_by_chapter(env.toc_fignumbers)
    return []


def setup(app: Sphinx) -> None:
    """Run just before and just after Sphinx numbers things itself."""
    app.connect("env-get-updated", restore_plain, priority=400)
    app.connect("env-get-updated", apply_chapters, priority=600)
