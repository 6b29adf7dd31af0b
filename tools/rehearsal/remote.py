"""The working tree as the git repository that the set-up cell installs from."""

import os
import subprocess
from pathlib import Path

from project_facts import ROOT, read_repository, read_version

SETTINGS = (
    "user.name=rehearsal",
    "user.email=x@localhost",
    "commit.gpgsign=false",
    "core.hooksPath=/dev/null",
)
AS_NOBODY = [word for setting in SETTINGS for word in ("-c", setting)]


def serve_working_tree(folder: Path, release: bool, root: Path = ROOT) -> dict[str, str]:
    """Commit the working tree, as it stands, to a repository of its own.

    Args:
        folder: where that repository is made, or brought up to date; one with a release, or one without.
        release: whether the tag of the version's release exists in it.
        root: of the working tree.

    Returns:
        Environment variables that make git take this repository for the one at the project's address.
    """

    def git(*words: str) -> None:
        own = {**os.environ, "GIT_DIR": str(folder), "GIT_WORK_TREE": str(root)}
        subprocess.run(["git", *AS_NOBODY, *words], env=own, cwd=root, check=True, capture_output=True)

    repository = read_repository(root)
    git("init", "--quiet", "--initial-branch", repository.branch)
    git("config", "uploadpack.allowFilter", "true")  # pip asks for the files that it needs, and no others
    git("config", "uploadpack.allowAnySHA1InWant", "true")
    git("add", "--all")
    git("commit", "--quiet", "--allow-empty", "--message", "The working tree")
    tag = f"v{read_version(root)}"
    if release:
        git("tag", "--force", tag)
    return {
        "GIT_CONFIG_COUNT": "1",
        "GIT_CONFIG_KEY_0": f"url.{folder.resolve().as_uri()}.insteadOf",
        "GIT_CONFIG_VALUE_0": repository.url,
    }
