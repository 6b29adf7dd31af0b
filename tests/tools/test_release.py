"""A version is released once: when it has no tag yet, after the tests, with the package that was built."""

import shutil
import subprocess

import pytest
import release
import yaml
from project_facts import ROOT, read_version

TAG = f"v{read_version()}"
FILES = [f"vit_from_scratch-{TAG[1:]}{end}" for end in (".tar.gz", "-py3-none-any.whl")]


@pytest.fixture
def clone(tmp_path):
    """A clone with nothing but a pyproject.toml, and a function that runs git in it."""
    shutil.copy(ROOT / "pyproject.toml", tmp_path)

    def git(*words):
        who = ["-c", "user.name=x", "-c", "user.email=x@y"]
        done = subprocess.run(["git", *who, *words], cwd=tmp_path, check=True, capture_output=True, text=True)
        return done.stdout.strip()

    git("init", "--quiet")
    git("add", "--all")
    git("commit", "--quiet", "--message", "x")
    return tmp_path, git


@pytest.fixture
def gh(tmp_path, monkeypatch):
    """A stand-in for GitHub's program; the file holds what it was asked, a word a line."""
    folder, asked = tmp_path / "bin", tmp_path / "asked"
    folder.mkdir()
    program = folder / "gh"
    program.write_text(f'#!/bin/sh\nprintf "%s\\n" "$@" > {asked}\nexit ${{GH_CODE:-0}}\n')
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}:/usr/bin:/bin")
    return asked


@pytest.fixture
def built(clone):
    (clone[0] / "dist").mkdir()
    for name in (*FILES, "vit_from_scratch-0.0.1-py3-none-any.whl"):
        (clone[0] / "dist" / name).write_text("x")


@pytest.mark.parametrize(("tags", "new"), [((), True), (("v0.0.1", TAG + ".1"), True), ((TAG,), False)])
def test_a_version_without_its_tag_is_new(tags, new, clone, tmp_path, monkeypatch, capsys):
    for tag in tags:
        clone[1]("tag", tag)
    output = tmp_path / "output"
    monkeypatch.setenv("GITHUB_OUTPUT", str(output))
    assert release.main(["plan"], clone[0]) == 0
    assert output.read_text() == f"new={'true' if new else 'false'}\n"
    assert ("still to be released" in capsys.readouterr().out) == new


def test_a_package_that_changed_since_its_tag_needs_a_new_version(clone, capsys):
    folder, git = clone
    generated = folder / "vit_classroom" / "assignments" / "chapters"
    generated.mkdir(parents=True)
    git("tag", TAG)
    (generated / "01_patches.ipynb").write_text("{}")
    git("add", "--all")
    git("commit", "--quiet", "--message", "a chapter")
    assert release.main(["plan"], folder) == 0, "a chapter's notebook is no change of the package"
    (folder / "vit_lab").mkdir()
    (folder / "vit_lab" / "packages.py").write_text("")
    git("add", "--all")
    git("commit", "--quiet", "--message", "the package")
    with pytest.raises(SystemExit, match=rf"has changed since {TAG}, .*raise the version in pyproject"):
        release.main(["plan"], folder)


def test_the_release_has_the_tag_the_commit_and_the_two_files(clone, gh, built):
    assert release.main(["publish"], clone[0]) == 0
    words = gh.read_text().splitlines()
    assert words[:3] == ["release", "create", TAG]
    assert [word.rpartition("/")[2] for word in words[3:5]] == FILES
    assert words[5:] == ["--target", clone[1]("rev-parse", "HEAD"), "--title", TAG, "--generate-notes"]


def test_what_is_released_is_not_released_again(clone, gh, built, capsys):
    clone[1]("tag", TAG)
    assert release.main(["publish"], clone[0]) == 0
    assert not gh.exists()
    assert capsys.readouterr().out == f"{TAG} is released already.\n"


def test_without_the_package_nothing_is_released(clone, gh):
    with pytest.raises(SystemExit, match="run `make dist`"):
        release.main(["publish"], clone[0])
    assert not gh.exists()


def test_a_failure_of_githubs_program_is_one(clone, gh, built, monkeypatch):
    monkeypatch.setenv("GH_CODE", "1")
    with pytest.raises(SystemExit, match="could not create"):
        release.main(["publish"], clone[0])


def test_only_the_job_that_releases_may_write_and_it_waits_for_the_tests():
    text = (ROOT / ".github/workflows/release.yml").read_text(encoding="utf-8")
    workflow = yaml.safe_load(text)
    jobs = workflow["jobs"]
    assert workflow["permissions"] == {"contents": "read"}
    assert {name for name, job in jobs.items() if "permissions" in job} == {"release"}
    assert (jobs["release"]["needs"], jobs["build"]["needs"]) == ("build", "plan")
    assert jobs["build"]["if"] == "needs.plan.outputs.new == 'true'"
    assert [step["run"] for step in jobs["build"]["steps"] if "run" in step] == ["make test", "make dist"]
