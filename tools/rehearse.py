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
import os
import sys
import tempfile
import time
from pathlib import Path

import nbformat
from changed import previous_commit
from project_facts import ROOT
from rehearsal import answers, folders, remote, running, runtimes, selection

from vit_from_scratch.errors import InputError

UNWRITTEN = "{name}: yours is still to be written.\n"


def rehearse(path: Path, python: Path) -> list[str]:
    """Rehearse one notebook in a fresh environment and return what was at fault."""
    with tempfile.TemporaryDirectory() as folder:
        own = folders.fresh_environment(python, Path(folder, "environment"))
        is_chapter = path.parent.name == "notebooks"
        served = remote.serve_working_tree(folders.PLACE / f"{path.parent.name}.git", release=is_chapter)
        settings = {**folders.colab_settings(own.parent.parent), **served}
        notebook = nbformat.read(path, as_version=4)
        if is_chapter:
            return [*running.run_as_in_colab(notebook, own, settings), *not_installed(notebook)]
        return rehearse_exercises(notebook, path.stem, own, settings)


def not_installed(notebook: nbformat.NotebookNode) -> list[str]:
    """A notebook that found the package somewhere else has rehearsed nothing."""
    text = running.said(notebook.cells[1])
    return [] if text.startswith("Installed ") else [f"cell 2 installed nothing; it says {text!r}"]


def rehearse_exercises(
    notebook: nbformat.NotebookNode, chapter: str, python: Path, settings: dict[str, str]
) -> list[str]:
    """Run a notebook for students unsolved as far as its first check, then whole, with the book's answers."""
    stub = answers.up_to_first_check(notebook)
    faults = [*running.run_as_in_colab(stub, python, settings), *not_installed(stub)]
    name = stub.cells[-1].source.split('"')[1]
    verdict = running.said(stub.cells[-1], "stderr")
    if verdict != UNWRITTEN.format(name=name):
        faults.append(f"unsolved, the first check says {verdict!r}")
    solved = answers.with_answers(notebook, chapter)
    faults += running.run_as_in_colab(solved, python, settings)
    faults += [
        f"solved, {cell.source} says {verdict!r}"
        for cell in solved.cells
        if cell.source.startswith(answers.CHECK) and (verdict := running.said(cell, "stderr"))
    ]
    return faults


def chosen(names: list[str], only_changed: bool) -> list[Path]:
    """The notebooks that were asked for.

    Raises:
        InputError: there is no chapter of one of these names.
    """
    every = selection.generated()
    known = {path.stem for path in every}
    for name in names:
        if name not in known:
            raise InputError(f"there is no chapter {name}; there are {', '.join(sorted(known))}.")
    if not only_changed:
        return [path for path in every if not names or path.stem in names]
    taken, left = selection.there_is_time_for(selection.changed(ROOT, previous_commit()))
    if left:
        print(f"changed, too, and left out for time: {', '.join(str(p.relative_to(ROOT)) for p in left)}")
    return taken


def rehearse_all(paths: list[Path], runtime: runtimes.Runtime) -> int:
    """Rehearse notebooks in one runtime, print a line for each, and return how many failed."""
    python = folders.environment_of(runtime)
    failed = 0
    for path in paths:
        start = time.perf_counter()
        faults = rehearse(path, python)
        place = path.relative_to(ROOT)
        print(f"{runtime.name}  {place}: {time.perf_counter() - start:.0f} s, ", end="")
        print("failed" if faults else "as it should be", *faults, sep="\n    ", flush=True)
        failed += bool(faults)
    return failed


def main(arguments: list[str] | None = None) -> int:
    """Run from the command line."""
    options = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    options.add_argument("chapters", nargs="*", help="names such as 03_attention; all of them by default")
    options.add_argument("--changed", action="store_true", help="what changed since main, and the shortest")
    every = [*runtimes.colab_runtimes()]
    known = ", ".join([*every, runtimes.LOCKED, runtimes.LOWEST])
    options.add_argument("--runtime", action="append", help=f"one of {known}; Colab's by default")
    given = options.parse_args(arguments)
    os.environ["TQDM_DISABLE"] = "1"
    failed = rehearsed = 0
    try:
        paths = chosen(given.chapters, given.changed)
        for runtime in [runtimes.read_runtime(name) for name in given.runtime or every]:
            try:
                runtimes.find_python(runtime.python)
            except InputError as reason:
                print(f"{runtime.name}: not rehearsed. {reason}", flush=True)
                continue
            failed += rehearse_all(paths, runtime)
            rehearsed += 1
    except InputError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    if failed or not rehearsed:
        print(f"error: {failed} failed." if failed else "error: nothing was rehearsed.", file=sys.stderr)
    return int(bool(failed) or not rehearsed)


if __name__ == "__main__":
    sys.exit(main())
