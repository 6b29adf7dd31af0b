"""A version is released once: when it has no tag yet, after the tests, with the package that was built."""

import os
import shutil
import subprocess

import pytest
import yaml
from project_facts import ROOT, read_version

TAG = f"v{read_version()}"
JOBS = yaml.safe_load((ROOT / ".github/workflows/release.yml").read_text(encoding="utf-8"))["jobs"]
PLAN = next(step["run"] for step in JOBS["plan"]["steps"] if step.get("id") == "plan")


def test_the_citation_has_the_version_of_the_package():
    cited = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))["version"]
    assert cited == read_version(), (
        "raise the version in pyproject.toml and CITATION.cff, then make notebooks"
    )


@pytest.fixture
def clone(tmp_path):
    """A clone with nothing but a pyproject.toml, and functions that run git and the workflow's plan in it."""
    shutil.copy(ROOT / "pyproject.toml", tmp_path)

    def git(*words):
        who = ["-c", "user.name=x", "-c", "user.email=x@y"]
        subprocess.run(["git", *who, *words], cwd=tmp_path, check=True, capture_output=True)

    def commit(name):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("{}")
        git("add", "--all")
        git("commit", "--quiet", "--message", name)

    def plan():
        output = tmp_path / "output"
        output.write_text("")
        command = ["bash", "-eo", "pipefail", "-c", PLAN]
        own = {**os.environ, "GITHUB_OUTPUT": str(output)}
        done = subprocess.run(command, cwd=tmp_path, env=own, capture_output=True, text=True)
        return done.returncode, dict(line.split("=") for line in output.read_text().splitlines()), done.stderr

    git("init", "--quiet")
    commit("README.md")
    return git, commit, plan


@pytest.mark.parametrize(("tags", "new"), [((), True), (("v0.0.1", TAG + ".1"), True), ((TAG,), False)])
def test_a_version_without_its_tag_is_new(tags, new, clone):
    git, _, plan = clone
    for tag in tags:
        git("tag", tag)
    assert plan()[:2] == (0, {"new": str(new).lower(), "tag": TAG})


def test_a_package_that_changed_since_its_tag_needs_a_new_version(clone):
    git, commit, plan = clone
    git("tag", TAG)
    commit("vit_classroom/assignments/chapters/01_patches.ipynb")
    assert plan()[0] == 0, "a chapter's notebook is not a change of the package"
    commit("vit_lab/packages.py")
    code, _, said = plan()
    assert code == 1
    assert f"has changed since {TAG}, " in said


def test_only_the_job_that_releases_may_write_and_it_waits_for_the_tests():
    assert {name for name, job in JOBS.items() if "permissions" in job} == {"release"}
    assert (JOBS["release"]["needs"], JOBS["build"]["needs"]) == (["plan", "build"], "plan")
    assert JOBS["build"]["if"] == "needs.plan.outputs.new == 'true'"
    assert [step["run"] for step in JOBS["build"]["steps"] if "run" in step] == [
        *("make test", "make check", "make dist")
    ]
