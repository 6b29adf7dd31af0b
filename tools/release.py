"""Release the version of pyproject.toml where it is new: a tag, and a GitHub release with the built package.

python tools/release.py plan       # says whether its tag is still to come, to a workflow as the output `new`;
                                   # a package that changed since its tag needs a new version, and it says so
python tools/release.py publish    # after `make dist`; where there is the tag already, nothing happens
"""

import argparse
import os
import shutil
import subprocess
import sys
from pathlib import Path

from project_facts import PACKAGES, ROOT, read_version


def is_new(root: Path) -> bool:
    """Whether the version has no tag yet, among those of this clone."""
    tag = f"refs/tags/v{read_version(root)}"
    found = subprocess.run(["git", "rev-parse", "--verify", "--quiet", tag], cwd=root, capture_output=True)
    return found.returncode != 0


def has_changed(root: Path) -> bool:
    """Whether the packages differ from those of the version's tag; notebooks in Colab install the latter."""
    packages = [*PACKAGES, ":!vit_classroom/assignments/chapters"]
    tag = f"v{read_version(root)}"
    found = subprocess.run(["git", "diff", "--quiet", tag, "HEAD", "--", *packages], cwd=root)
    return found.returncode != 0


def plan(root: Path) -> None:
    """Say whether there is something to release, also to the workflow that this runs in."""
    new = is_new(root)
    if not new and has_changed(root):
        raise SystemExit(
            f"error: the package has changed since v{read_version(root)}, which notebooks in Colab install: "
            "raise the version in pyproject.toml and CITATION.cff."
        )
    print(f"v{read_version(root)} {'is still to be released.' if new else 'is released already.'}")
    if output := os.environ.get("GITHUB_OUTPUT"):
        with open(output, "a", encoding="utf-8") as file:
            file.write(f"new={str(new).lower()}\n")


def publish(root: Path) -> None:
    """Create the release, and with it the tag, on the commit that is checked out."""
    version = read_version(root)
    if not is_new(root):
        print(f"v{version} is released already.")
        return
    name = f"vit_from_scratch-{version}"
    files = [root / "dist" / f"{name}.tar.gz", root / "dist" / f"{name}-py3-none-any.whl"]
    for path in files:
        if not path.exists():
            raise SystemExit(f"error: there is no {path.relative_to(root)}; run `make dist`.")
    if shutil.which("gh") is None:
        raise SystemExit("error: GitHub's program `gh` is missing; the workflow release.yml has it.")
    commit = subprocess.run(
        ["git", "rev-parse", "HEAD"], cwd=root, check=True, capture_output=True, text=True
    ).stdout.strip()
    words = ["--target", commit, "--title", f"v{version}", "--generate-notes"]
    created = subprocess.run(["gh", "release", "create", f"v{version}", *map(str, files), *words], cwd=root)
    if created.returncode:
        raise SystemExit(f"error: gh could not create the release v{version}.")
    print(f"Released v{version} with {', '.join(path.name for path in files)}.")


def main(arguments: list[str] | None = None, root: Path = ROOT) -> int:
    """Run from the command line."""
    options = argparse.ArgumentParser(description="Release the version of pyproject.toml where it is new.")
    options.add_argument("step", choices=["plan", "publish"])
    {"plan": plan, "publish": publish}[options.parse_args(arguments).step](root)
    return 0


if __name__ == "__main__":
    sys.exit(main())
