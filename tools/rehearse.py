"""Run the generated notebooks as Colab would: its packages, an empty folder, the set-up cell first.

    make rehearse                       every notebook, with what Colab's runtimes hold
    make rehearse ONLY=03_attention     one chapter, and its exercises
    python tools/rehearse.py --changed  the shortest, and what changed since main as far as a few minutes go
    python tools/rehearse.py --runtime lowest 03_attention    with the lower bounds of pyproject.toml

The repository is served from the working tree, with a release for the chapters and without one for the
exercises. A notebook fails for an error, for a warning that names a file of ours, and for a check that does
not pass. Environments are kept in _build/rehearsal.
"""

import argparse
import copy
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import nbformat
from changed import git, previous_commit
from jupyter_client.kernelspec import KernelSpecManager
from jupyter_client.manager import AsyncKernelManager
from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError, CellTimeoutError, DeadKernelError
from nbformat import NotebookNode
from project_facts import ROOT, chapters, measured_chapters, read_project, read_repository, read_version

from vit_classroom.assignments.notebooks import read_chapter
from vit_from_scratch.errors import InputError
from vit_from_scratch.files import write_atomically
from vit_lab.runs.locks import locked

PLACE = ROOT / "_build" / "rehearsal"
TIMEOUT = 600  # seconds for one cell
HIDDEN = ("PYTHONPATH", "VIRTUAL_ENV", "VIT_BUDGET", "MPLBACKEND")  # Colab has none of this machine's
WARNING = re.compile(r"^(\S.*?):\d+: (\w*Warning: .*)$", re.MULTILINE)
OURS = re.compile(r"[/\\]vit_(?:from_scratch|lab|classroom)[/\\]|ipykernel_\d|<ipython-input")
COLOUR = re.compile(r"\x1b\[[\d;]*m")
CHECK = "sheet.check("
UNWRITTEN = "{name}: yours is still to be written.\n"
FOLDERS = ("notebooks", "exercises")
SECONDS = 120  # that `--changed` may take on a quiet machine, besides the shortest
SETUP = 25  # seconds of a notebook's set-up cell, which pip spends
KERNEL = ("ipykernel>=6.29", "pip>=24")  # what a runtime needs besides, to run notebooks and to install
OF_COLAB = ("torch", "torchvision", "matplotlib", "numpy", "scikit-learn", *KERNEL)


@dataclass(frozen=True)
class Runtime:
    """What a notebook finds before its set-up cell has run: interpreter, packages, further words for uv."""

    name: str
    python: str
    packages: tuple[str, ...]
    options: tuple[str, ...] = ()


def runtimes() -> dict[str, Runtime]:
    """Return the runtimes by name: Colab's, the latest first, then that of the lock and the lowest.

    "lock" has this interpreter and the versions of requirements.lock, which are in uv's cache; "lowest" the
    oldest Python and the lowest versions that pyproject.toml allows.
    """
    listed = tomllib.loads(Path(__file__).with_name("colab_runtimes.toml").read_text(encoding="utf-8"))
    found = {name: Runtime(name, one["python"], tuple(one["packages"])) for name, one in listed.items()}
    project = read_project()
    oldest, needed = project["requires-python"].removeprefix(">="), (*project["dependencies"], *KERNEL)
    own = ("--constraint", str(ROOT / "requirements.lock"))
    found["lock"] = Runtime("lock", sys.executable, OF_COLAB, own)
    found["lowest"] = Runtime("lowest", oldest, needed, ("--resolution", "lowest-direct"))
    return found


# ---- environments -----------------------------------------------------------------------------------


def environment_of(runtime: Runtime, place: Path = PLACE) -> Path:
    """Build the environment of a runtime where it is missing or another one, and return its interpreter."""
    folder, uv = place / runtime.name, Path(sys.executable).with_name("uv")
    python, mark = folder / "bin" / "python", folder / "built-from.json"
    made_of = json.dumps([runtime.python, *runtime.packages, *runtime.options]).encode()
    place.mkdir(parents=True, exist_ok=True)
    with locked(place):
        if not (mark.exists() and mark.read_bytes() == made_of):
            shutil.rmtree(folder, ignore_errors=True)
            _run(uv, "venv", "--quiet", "--python", runtime.python, folder)
            _run(uv, "pip", "install", "--quiet", "--python", python, *runtime.options, *runtime.packages)
            write_atomically(mark, made_of)
    return python


def _run(*command: str | Path) -> None:
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        raise InputError(f"`{' '.join(map(str, command[:4]))} ...` failed: {done.stderr.strip()}")


def fresh_environment(python: Path, folder: Path) -> Path:
    """Make an environment that sees all packages of another one and installs into itself.

    It begins every notebook as Colab does: a module `google.colab` is imported before the first cell. The
    interpreter of the environment below is given, the one above is returned.
    """
    _run(python, "-m", "venv", "--without-pip", folder)
    (below,) = (python.parent.parent / "lib").glob("python3*/site-packages")
    (own,) = (folder / "lib").glob("python3*/site-packages")
    for path, text in {
        own / "below.pth": f"{below}\n",
        own / "google/colab/__init__.py": '"""Stands in for Colab\'s module."""\n',
        folder / "ipython/profile_default/startup/colab.py": "import google.colab\n",
    }.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return folder / "bin" / "python"


def colab_settings(folder: Path) -> dict[str, str]:
    """Return environment variables that a notebook finds in Colab, for the environment in this folder."""
    return {
        "IPYTHONDIR": str(folder / "ipython"),
        "COLAB_RELEASE_TAG": f"rehearsal-of-{read_version()}",
        "MPLBACKEND": "module://matplotlib_inline.backend_inline",
    }


def serve_working_tree(folder: Path, release: bool, root: Path = ROOT) -> dict[str, str]:
    """Commit the working tree, as it is, to a repository in `folder`, with the release's tag or without.

    Returns environment variables that make git take it for the repository at the project's address, from
    which the set-up cell installs.
    """
    settings = ("user.name=x", "user.email=x@localhost", "commit.gpgsign=false", "core.hooksPath=/dev/null")
    anonymous = [word for setting in settings for word in ("-c", setting)]
    repository = read_repository(root)
    commands = [
        ("init", "--quiet", "--initial-branch", repository.branch),
        ("config", "uploadpack.allowFilter", "true"),  # pip asks for the files that it needs, and no others
        ("config", "uploadpack.allowAnySHA1InWant", "true"),
        ("add", "--all"),
        ("commit", "--quiet", "--allow-empty", "--message", "The working tree"),
        *([("tag", "--force", f"v{read_version(root)}")] if release else []),
    ]
    own = {**os.environ, "GIT_DIR": str(folder), "GIT_WORK_TREE": str(root)}
    for words in commands:
        subprocess.run(["git", *anonymous, *words], env=own, cwd=root, check=True, capture_output=True)
    return {
        "GIT_CONFIG_COUNT": "1",
        "GIT_CONFIG_KEY_0": f"url.{folder.resolve().as_uri()}.insteadOf",
        "GIT_CONFIG_VALUE_0": repository.url,
    }


# ---- one notebook -----------------------------------------------------------------------------------


def run_as_in_colab(notebook: NotebookNode, python: Path, settings: dict[str, str]) -> list[str]:
    """Run a notebook in an empty folder, with an interpreter and further environment variables of its own.

    Its outputs are filled in; what was at fault is returned, a line each.
    """
    with tempfile.TemporaryDirectory() as folder:
        kernels, empty = Path(folder, "kernels"), Path(folder, "content")
        for path in (kernels / "python3", empty):
            path.mkdir(parents=True)
        start = [str(python), "-m", "ipykernel_launcher", "-f", "{connection_file}"]
        spec = {"argv": start, "display_name": "Python 3", "language": "python"}
        (kernels / "python3" / "kernel.json").write_text(json.dumps(spec), encoding="utf-8")
        specs = KernelSpecManager(kernel_dirs=[str(kernels)], ensure_native_kernel=False)
        manager = AsyncKernelManager(kernel_name="python3", kernel_spec_manager=specs)
        resources = {"metadata": {"path": str(empty)}}
        client = NotebookClient(notebook, km=manager, timeout=TIMEOUT, resources=resources)
        kept = {name: value for name, value in os.environ.items() if name not in HIDDEN}
        errors = Path(folder, "errors.txt")
        try:
            with errors.open("w") as stderr:
                client.execute(cleanup_kc=True, env={**kept, **settings}, stderr=stderr)
        except CellExecutionError:
            pass  # it is in the outputs
        except (CellTimeoutError, DeadKernelError, RuntimeError) as failure:
            last = errors.read_text(encoding="utf-8").splitlines()[-1:]
            return [f"{type(failure).__name__}: {str(failure).splitlines()[0]} {' '.join(last)}"]
    return list(faults(notebook))


def faults(notebook: NotebookNode) -> Iterator[str]:
    """Say which cells ended with an error, and which warnings name a file of ours or a cell."""
    for number, cell in enumerate(notebook.cells, start=1):
        expected = "raises-exception" in cell.metadata.get("tags", [])
        for output in cell.get("outputs", []):
            if output.output_type == "error" and not expected:
                yield f"cell {number}: {output.ename}: {output.evalue}"
        for path, warning in WARNING.findall(said(cell, "stderr")):
            if OURS.search(path):
                yield f"cell {number}: {warning} ({path})"


def said(cell: NotebookNode, stream: str = "stdout") -> str:
    """What a cell has printed, without colours."""
    outputs = [output for output in cell.get("outputs", []) if output.get("name") == stream]
    return COLOUR.sub("", "".join(output.text for output in outputs))


def rehearse(path: Path, python: Path) -> list[str]:
    """Rehearse one notebook in a fresh environment and return what was at fault."""
    with tempfile.TemporaryDirectory() as folder:
        own = fresh_environment(python, Path(folder, "environment"))
        is_chapter = path.parent.name == "notebooks"
        served = serve_working_tree(PLACE / f"{path.parent.name}.git", release=is_chapter)
        settings = {**colab_settings(own.parent.parent), **served}
        notebook = nbformat.read(path, as_version=4)
        if is_chapter:
            return [*run_as_in_colab(notebook, own, settings), *not_installed(notebook)]
        return rehearse_exercises(notebook, path.stem, own, settings)


def not_installed(notebook: NotebookNode) -> list[str]:
    """A notebook that found the package somewhere else has rehearsed nothing."""
    text = said(notebook.cells[1])
    return [] if text.startswith("Installed ") else [f"cell 2 installed nothing; it says {text!r}"]


def rehearse_exercises(
    notebook: NotebookNode, chapter: str, python: Path, settings: dict[str, str]
) -> list[str]:
    """Run a notebook for students unsolved as far as its first check, then whole, with the book's answers."""
    stub = up_to_first_check(notebook)
    found = [*run_as_in_colab(stub, python, settings), *not_installed(stub)]
    verdict = said(stub.cells[-1], "stderr")
    if verdict != UNWRITTEN.format(name=stub.cells[-1].source.split('"')[1]):
        found.append(f"unsolved, the first check says {verdict!r}")
    solved = with_answers(notebook, chapter)
    found += run_as_in_colab(solved, python, settings)
    checks = [cell for cell in solved.cells if cell.source.startswith(CHECK)]
    verdicts = {cell.source: said(cell, "stderr") for cell in checks}
    return found + [f"solved, {source} says {verdict!r}" for source, verdict in verdicts.items() if verdict]


def with_answers(notebook: NotebookNode, chapter: str) -> NotebookNode:
    """Fill in what the chapter's checks ask for; what is answered in words stays as it is."""
    answers = {task.name: task.answer for task in read_chapter(chapter).tasks if task.check}
    filled = copy.deepcopy(notebook)
    for cell in filled.cells:
        name = cell.metadata.get("nbgrader", {}).get("grade_id")
        cell.source = answers.get(name, cell.source)
    return filled


def up_to_first_check(notebook: NotebookNode) -> NotebookNode:
    """Keep the cells before the first check, and the check."""
    short = copy.deepcopy(notebook)
    place = next(number for number, cell in enumerate(short.cells) if cell.source.startswith(CHECK))
    short.cells = short.cells[: place + 1]
    return short


# ---- which notebooks --------------------------------------------------------------------------------


def generated(root: Path = ROOT) -> list[Path]:
    """Every notebook that a reader opens in Colab, chapter by chapter."""
    return [root / folder / f"{chapter.stem}.ipynb" for chapter in chapters(root) for folder in FOLDERS]


def seconds_of(root: Path = ROOT) -> dict[str, float]:
    """How long each chapter runs on a CPU, as measured; one that was never measured comes last."""
    measured = measured_chapters(root).items()
    on_cpu = {stem: found["cpu"]["seconds"] for stem, found in measured if "cpu" in found}
    return {path.stem: on_cpu.get(path.stem, float("inf")) for path in generated(root)}


def changed_notebooks(root: Path, base: str | None) -> list[Path]:
    """The notebooks whose code differs from that of a commit, the quickest first; prose does not run.

    A set-up cell that changed is at the head of all of them: the shortest notebook speaks for it.
    """

    def code(text: str) -> list[Any]:
        cells = [cell for cell in json.loads(text)["cells"] if cell["cell_type"] == "code"]
        return [cell["source"] for cell in cells[1:]]

    found = []
    for path in generated(root):
        old = git(root, "show", f"{base}:{path.relative_to(root).as_posix()}") if base else None
        if old is None or code(old) != code(path.read_text(encoding="utf-8")):
            found.append(path)
    seconds = seconds_of(root)
    return sorted(found, key=lambda path: seconds[path.stem])


def there_is_time_for(paths: list[Path], root: Path = ROOT) -> tuple[list[Path], list[Path]]:
    """Take both notebooks of the shortest chapter, then others while their seconds fit; and what is left."""
    seconds = seconds_of(root)
    shortest = min(seconds, key=lambda name: (seconds[name], name))
    taken, left, total = [path for path in generated(root) if path.stem == shortest], [], 0.0
    for path in paths:
        if path not in taken:
            total += seconds[path.stem] + SETUP
            (taken if total <= SECONDS else left).append(path)
    return taken, left


def chosen(names: list[str], only_changed: bool) -> list[Path]:
    """The notebooks that were asked for."""
    known = [chapter.stem for chapter in chapters()]
    for name in set(names) - set(known):
        raise InputError(f"there is no chapter {name}; there are {', '.join(known)}.")
    if not only_changed:
        return [path for path in generated() if not names or path.stem in names]
    taken, left = there_is_time_for(changed_notebooks(ROOT, previous_commit()))
    if left:
        print(f"changed, too, and left out for time: {', '.join(str(p.relative_to(ROOT)) for p in left)}")
    return taken


def rehearse_all(paths: list[Path], runtime: Runtime) -> int:
    """Rehearse notebooks in one runtime, print a line for each, and return how many failed."""
    python, failed = environment_of(runtime), 0
    for path in paths:
        start = time.perf_counter()
        found = rehearse(path, python)
        print(f"{runtime.name}  {path.relative_to(ROOT)}: {time.perf_counter() - start:.0f} s, ", end="")
        print("failed" if found else "as it should be", *found, sep="\n    ", flush=True)
        failed += bool(found)
    return failed


def main(arguments: list[str] | None = None) -> int:
    """Run from the command line."""
    known = runtimes()
    as_written = argparse.RawDescriptionHelpFormatter
    options = argparse.ArgumentParser(description=__doc__, formatter_class=as_written)
    options.add_argument("chapters", nargs="*", help="names such as 03_attention; all of them by default")
    options.add_argument("--changed", action="store_true", help="what changed since main, and the shortest")
    options.add_argument("--runtime", action="append", choices=known, help="Colab's by default")
    given = options.parse_args(arguments)
    os.environ["TQDM_DISABLE"] = "1"
    names = given.runtime or [name for name in known if name.startswith("colab")]
    try:
        paths = chosen(given.chapters, given.changed)
        failed = sum(rehearse_all(paths, known[name]) for name in names)
    except InputError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    if failed:
        print(f"error: {failed} failed.", file=sys.stderr)
    return int(bool(failed))


if __name__ == "__main__":
    sys.exit(main())
