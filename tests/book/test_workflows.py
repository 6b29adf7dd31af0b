"""Each `run:` line of each workflow is executed once, in a clean clone of the last commit.

Stand-ins on the PATH take the place of what a machine of GitHub would do: `git push` and `gh` are written
down and not done, `pip install` only looks whether such packages exist here. What takes long is not done
again: of `make` it is proved that the target exists and that its recipe parses (`make -n`); pytest, pyright,
Jupyter Book, the rehearsal and the look at the built book are written down. Steps run whatever their `if:`
says.
"""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from check_book import BUILT
from project_facts import ROOT, read_repository, read_version

pytestmark = [pytest.mark.slow, pytest.mark.built]
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
ELSEWHERE = "some-school/vit-course"
EXPRESSION = re.compile(r"\$\{\{\s*(.*?)\s*\}\}")
EXAMPLES = {
    "github.server_url": "https://github.com",
    "github.repository": read_repository().slug,
    "github.token": "a-token",
    "github.ref_name": "main",
    "matrix.os": "ubuntu-latest",
    "needs.plan.outputs.tag": f"v{read_version()}",
    "matrix.python": "3.12",
    "github.event.repository.default_branch": "main",
    "github.event_name == 'push' && github.event.before || ''": "",
}
NOT_AGAIN = ("pytest", "pyright", "jupyter-book", "pip", "uv")
PROMISED = {"make links": "_build/linkcheck/output.txt"}  # what a target leaves for the steps after it

RECORD = 'printf "%s %s\\n" "$(basename "$0")" "$*" >> "$CALLS"; '
STAND_INS = {
    "git": f'case " $* " in *" push "*) {RECORD} exit 0;; esac; exec {shutil.which("git")} "$@"',
    "gh": RECORD,
    "make": f'{RECORD} exec {shutil.which("make")} -n "$@" > /dev/null',
}
PYTHON = f"""case "$1" in tools/rehearse.py|tools/check_book.py) {RECORD} exit 0;; esac
case "$1 $2 $3" in "-m pip install")
{RECORD} shift 3; exec {sys.executable} -c '{{looks}}' "$@";; esac
exec {sys.executable} "$@"
"""
LOOKS = """
import sys
from importlib.metadata import version
for name in sys.argv[1:]:
    name.startswith("-") or version(name)
"""


def write_program(path, text):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\n{text}\n", encoding="utf-8")
    path.chmod(0o755)


class Machine:
    """A clean clone, and a PATH of stand-ins before the programs of this machine."""

    def __init__(self, folder, examples):
        self.clone, self.calls, self.examples = folder / "clone", folder / "calls", examples
        self.files = {name: folder / name for name in ("GITHUB_OUTPUT", "GITHUB_ENV", "GITHUB_STEP_SUMMARY")}
        for path in (self.calls, *self.files.values()):
            path.touch()
        subprocess.run(["git", "clone", "--quiet", str(ROOT), str(self.clone)], check=True)
        (self.clone / "_build").mkdir()
        (self.clone / "_build" / "html").symlink_to(BUILT)
        for name, text in STAND_INS.items():
            write_program(folder / "bin" / name, text)
        for path in (folder / "bin", self.clone / ".venv" / "bin"):
            for name in ("python", "python3"):
                write_program(path / name, PYTHON.replace("{looks}", LOOKS))
        for program in Path(sys.prefix, "bin").iterdir():
            place = self.clone / ".venv" / "bin" / program.name
            if program.name in NOT_AGAIN:
                write_program(place, RECORD)
            elif not program.name.startswith("python"):
                place.symlink_to(program)
        self.environment = {
            **{name: value for name, value in os.environ.items() if not name.startswith("GIT_")},
            **{name: str(path) for name, path in self.files.items()},
            "PATH": f"{folder / 'bin'}:{os.environ['PATH']}",
            "PYTHONPATH": str(self.clone),
            "CALLS": str(self.calls),
        }

    def fill(self, text):
        """Put an example in the place of each `${{ expression }}`."""

        def example(match):
            assert match[1] in self.examples, f"tests/book/test_workflows.py has no example for {match[0]}"
            return self.examples[match[1]]

        return EXPRESSION.sub(example, str(text))

    def run(self, step):
        """Run one step as GitHub does, and note what it gives to later ones."""
        self.files["GITHUB_OUTPUT"].write_text("", encoding="utf-8")
        command = self.fill(step["run"])
        more = {name: self.fill(value) for name, value in step.get("env", {}).items()}
        folder = self.clone / self.fill(step.get("working-directory", "."))
        done = subprocess.run(
            ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", command],
            cwd=folder,
            env=self.environment | more,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, f"{command}\n{done.stdout[-3000:]}{done.stderr[-3000:]}"
        for line in self.files["GITHUB_OUTPUT"].read_text(encoding="utf-8").splitlines():
            name, _, value = line.partition("=")
            self.examples[f"steps.{step.get('id')}.outputs.{name}"] = value
        if command.strip() in PROMISED:
            promised = self.clone / PROMISED[command.strip()]
            promised.parent.mkdir(exist_ok=True)
            promised.write_text("a line\n", encoding="utf-8")


def run_all(path, folder):
    """Run a workflow's lines in their order, and return the machine that they ran on."""
    examples = EXAMPLES | ({"github.repository": ELSEWHERE} if path.stem == "address" else {})
    machine = Machine(folder, examples)
    for job in yaml.safe_load(path.read_text(encoding="utf-8"))["jobs"].values():
        for step in job["steps"]:
            if "run" in step:
                machine.run(step)
    return machine


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.stem)
def test_every_line_of_a_workflow_runs(built, path, tmp_path):
    machine = run_all(path, tmp_path)
    calls = machine.calls.read_text(encoding="utf-8").splitlines()
    print("stood in for:", *calls, sep="\n  ")
    if path.stem == "address":
        assert calls[-1] == f"git push https://x-access-token:a-token@github.com/{ELSEWHERE} HEAD"
        said = subprocess.run(
            ["git", "show", "--stat"], cwd=machine.clone, capture_output=True, text=True, check=True
        )
        assert "Set the repository's address" in said.stdout
        assert "_config.yml" in said.stdout
        assert ELSEWHERE in (machine.clone / "CITATION.cff").read_text(encoding="utf-8")
    if path.stem == "links":
        assert machine.files["GITHUB_STEP_SUMMARY"].read_text(encoding="utf-8") == "a line\n"
