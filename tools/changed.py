"""Print which files under some paths changed since main was left.

    python tools/changed.py .github Makefile

On main itself the commit that CHANGED_SINCE names is compared, as after a push of several; without one, the
last that is half a day older than the newest, so that work of many commits is looked at as a whole. Where no
commit came before, every file is new.
"""

import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from project_facts import ROOT, read_repository

HALF_A_DAY = 12 * 3600  # seconds


def git(root: Path, *words: str) -> str | None:
    """Return what git prints, or None where it fails."""
    done = subprocess.run(["git", *words], cwd=root, capture_output=True, text=True)
    return done.stdout if done.returncode == 0 else None


def previous_commit(root: Path = ROOT) -> str | None:
    """Return the commit to compare with: where main was left, or on main one before; None without one."""
    named = os.environ.get("CHANGED_SINCE", "")
    if named.strip("0") and git(root, "cat-file", "-e", f"{named}^{{commit}}") is not None:
        return named
    branch = read_repository(root).branch
    bases = (git(root, "merge-base", name, "HEAD") for name in (f"origin/{branch}", branch))
    base = next(filter(None, bases), None)
    if base is None or base == git(root, "rev-parse", "HEAD"):
        newest = git(root, "show", "--no-patch", "--format=%ct", "HEAD")
        earlier = f"--before={int(newest) - HALF_A_DAY if newest else 0}"
        before = git(root, "rev-list", "--max-count=1", earlier, "HEAD")
        base = before or git(root, "rev-parse", "--verify", "--quiet", "HEAD~1")
    return base.strip() if base else None


def changed_files(paths: Sequence[str], root: Path = ROOT) -> list[str]:
    """Return the tracked files under the paths, relative to the root, that differ from the commit before."""
    base = previous_commit(root)
    found = git(root, *(("diff", "--name-only", base) if base else ("ls-files",)), "--", *paths)
    if found is None:
        sys.exit(f"error: git cannot compare {root} with {base}.")
    return found.splitlines()


if __name__ == "__main__":
    print("\n".join(changed_files(sys.argv[1:])))
