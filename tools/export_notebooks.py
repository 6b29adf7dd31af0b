"""Write the notebooks that come from the chapters; --check only says which are stale.

notebooks/NN_name.ipynb                               the chapter, beside its NN_name.md
notebooks/run_a_claim.ipynb                           a comparison of book/claims.toml, in small
exercises/NN_name.ipynb                               the same with stubs in place of the answers
vit_classroom/assignments/chapters/NN_name.ipynb      the same with marked answers, for courses
book/drawings/NAME.png                                the drawings that these notebooks hold
"""

import argparse
import sys
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path

from chapter_export import ExportError, export_assignment, export_chapter
from chapter_export.catalogue import read_catalogue
from chapter_export.claim_cells import CLAIMS, NOTEBOOK, export_claims
from drawings import draw, stale_pictures
from project_facts import ROOT, chapter_number, chapters


def refresh_notebooks(root: Path, check: bool) -> bool:
    """Export what is stale; a notebook whose chapter is gone should not be there."""
    catalogue = read_catalogue(root)
    wanted: dict[Path, str | None] = {}
    answers, stubs = root / "vit_classroom" / "assignments" / "chapters", root / "exercises"
    for path in chapters(root):
        name = f"{path.stem}.ipynb"
        wanted[path.with_suffix(".ipynb")] = export_chapter(path, catalogue)
        wanted[answers / name], wanted[stubs / name] = export_assignment(path, catalogue)
    if (root / CLAIMS).exists():
        wanted[root / NOTEBOOK] = export_claims(catalogue)
    for folder in (root / "notebooks", answers, stubs):
        for path in folder.glob("*.ipynb"):
            if chapter_number(path.stem) is not None:
                wanted.setdefault(path, None)
    written = {
        path: None if text is None else partial(path.write_text, text, encoding="utf-8")
        for path, text in wanted.items()
        if text is None or not path.exists() or path.read_text(encoding="utf-8") != text
    }
    return refresh(written, check, root)


def refresh(stale: Mapping[Path, Callable[[], object] | None], check: bool, root: Path) -> bool:
    """Write what is stale, remove what should not be there; only say so if `check`. Was there anything?"""
    for path, write in stale.items():
        print(f"{'stale' if check else 'wrote' if write else 'removed'}: {path.relative_to(root)}")
        if not check and write:
            path.parent.mkdir(parents=True, exist_ok=True)
            write()
        elif not check:
            path.unlink()
    return bool(stale)


def refresh_pictures(root: Path, check: bool) -> bool:
    """Draw what is stale."""
    drawn = {path: name and partial(draw, name, root) for path, name in stale_pictures(root).items()}
    return refresh(drawn, check, root)


def main(arguments: list[str] | None = None, root: Path = ROOT) -> int:
    """Run from the command line."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--check", action="store_true", help="write nothing; fail when a notebook is stale")
    check = options.parse_args(arguments).check
    try:
        stale = [refresh_pictures(root, check), refresh_notebooks(root, check)]
    except ExportError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    if check and any(stale):
        print("error: run `make notebooks` to bring the notebooks up to date.", file=sys.stderr)
    return int(check and any(stale))


if __name__ == "__main__":
    sys.exit(main())
