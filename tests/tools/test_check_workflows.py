"""The workflows are linted by both programs, and neither is left out silently."""

import shutil

import check_workflows
import pytest

SOUND = """
name: x
on: {push: {branches: [main]}}
permissions: {}
concurrency: {group: x}
jobs:
  one:
    runs-on: ubuntu-latest
    steps:
      - name: x
        run: echo x
"""


@pytest.fixture
def project(tmp_path):
    def write(text):
        path = tmp_path / ".github" / "workflows" / "x.yml"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
        (tmp_path / ".github" / "zizmor.yml").write_bytes(
            (check_workflows.ROOT / ".github" / "zizmor.yml").read_bytes()
        )
        return tmp_path

    return write


@pytest.fixture
def without_actionlint(monkeypatch):
    monkeypatch.setattr(shutil, "which", lambda name: None)
    monkeypatch.delenv("CI", raising=False)


@pytest.mark.usefixtures("without_actionlint")
def test_a_sound_workflow_passes_and_what_was_left_out_is_said(project, capfd):
    assert check_workflows.main(project(SOUND)) == 0
    assert "actionlint is left out" in capfd.readouterr().err


@pytest.mark.usefixtures("without_actionlint")
def test_continuous_integration_leaves_nothing_out(project, monkeypatch):
    monkeypatch.setenv("CI", "true")
    assert check_workflows.main(project(SOUND)) == 1


@pytest.mark.usefixtures("without_actionlint")
@pytest.mark.parametrize(
    ("before", "after", "finding"),
    [
        ("run: echo x", "uses: somebody/action@v1", "unpinned-uses"),
        ("run: echo x", "uses: actions/checkout@v4", "artipacked"),
        ("run: echo x", "run: echo ${{ github.event.issue.title }}", "template-injection"),
    ],
)
def test_zizmor_finds_what_an_attacker_could_use(project, capfd, before, after, finding):
    assert check_workflows.main(project(SOUND.replace(before, after))) == 1
    assert finding in capfd.readouterr().out


@pytest.mark.usefixtures("without_actionlint")
def test_actions_of_github_may_be_taken_by_their_major_version(project):
    checkout = "uses: actions/checkout@v4\n        with: {persist-credentials: false}"
    assert check_workflows.main(project(SOUND.replace("run: echo x", checkout))) == 0


@pytest.mark.parametrize("code", [0, 1])
def test_the_verdict_of_actionlint_counts(project, monkeypatch, tmp_path, code):
    program = tmp_path / "bin" / "actionlint"
    program.parent.mkdir()
    program.write_text(f"#!/bin/sh\nexit {code}\n", encoding="utf-8")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(program.parent), prepend=":")
    assert check_workflows.main(project(SOUND)) == code
