"""Run every exported notebook and record how long it takes and prints, for the head of each chapter.

    python tools/measure_chapters.py             # all chapters, on the device at hand
    python tools/measure_chapters.py 03_attention

Writes vit_lab/results/chapter_minutes.json. A chapter keeps one record for each device and budget:
"cpu" and "gpu" with the quick one, "cpu-full" and "gpu-full"; measuring one leaves the others as they are.
The time includes the start of the kernel. It ends with an error if a chapter takes longer than it may on a
CPU with the quick budget. Measure while nothing else runs.
"""

import argparse
import json
import os
import re
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import nbclient
import nbformat
from project_facts import chapters, minutes_file

from vit_from_scratch.files import write_json
from vit_lab.runs.environment import environment

TIMEOUT = 600  # seconds for one cell
LIMIT = 60  # seconds for a chapter with the quick budget on the CPU


def run_notebook(path: Path) -> tuple[float, int]:
    """Run a notebook in an empty folder; return its seconds, and how many lines its open outputs have."""
    notebook = nbformat.read(path, as_version=4)
    with tempfile.TemporaryDirectory() as folder:
        start = time.perf_counter()
        nbclient.NotebookClient(
            notebook, timeout=TIMEOUT, kernel_name="python3", resources={"metadata": {"path": folder}}
        ).execute()
        return time.perf_counter() - start, printed_lines(notebook)


def printed_lines(notebook: nbformat.NotebookNode) -> int:
    """Count the lines that cells print before the exercises, without those that the book folds away."""
    lines = 0
    for cell in notebook.cells:
        if cell.cell_type == "markdown" and re.search("^## Exercises$", cell.source, re.MULTILINE):
            break
        if cell.cell_type == "code" and not re.match("# ?@title For the careful reader", cell.source):
            texts = [output.text for output in cell.outputs if output.output_type == "stream"]
            lines += sum(bool(line.strip()) for text in texts for line in text.splitlines())
    return lines


def surroundings() -> dict[str, Any]:
    """What a measurement depends on besides the chapter."""
    here = environment()
    versions, hardware = here["versions"], here["hardware"]
    return {
        "budget": os.environ.get("VIT_BUDGET", "quick"),
        "date": here["date"].partition("T")[0],
        **{name: hardware[name] for name in ("processor", "cores")},
        **{name.replace("-", "_"): versions[name] for name in ("python", "torch", "vit-from-scratch")},
        **({"gpu": hardware["gpu"]} if hardware["gpu"] else {}),
    }


def measure(names: list[str], file: Path) -> list[str]:
    """Measure chapters, add them to the file, and return those that take longer than they may."""
    recorded = json.loads(file.read_text(encoding="utf-8"))["chapters"] if file.exists() else {}
    present = {chapter.stem: chapter for chapter in chapters()}
    for name in set(names) - set(present):
        raise SystemExit(f"error: there is no chapter {name}; there are {', '.join(present)}.")
    here = surroundings()
    device = "gpu" if "gpu" in here else "cpu"
    place = device if here["budget"] == "quick" else f"{device}-full"
    too_long = []
    for name in names or present:
        seconds, printed = run_notebook(present[name].with_suffix(".ipynb"))
        print(f"{name}: {seconds:.1f} s on the {device}")
        recorded.setdefault(name, {})[place] = {
            "seconds": round(seconds, 1),
            "printed_lines": printed,
            **here,
        }
        if place == "cpu" and seconds > LIMIT:
            too_long.append(name)
    kept = {"chapters": {name: recorded[name] for name in present if name in recorded}}
    write_json(file, kept)
    print(f"wrote {file}; now run `make notebooks`")
    return too_long


def main(arguments: list[str] | None = None) -> int:
    """Run from the command line."""
    options = argparse.ArgumentParser(description="Record how long chapters take.")
    options.add_argument("chapters", nargs="*", help="names such as 03_attention; all of them by default")
    options.add_argument("--results", type=Path, default=minutes_file(), help="the file they are added to")
    os.environ["TQDM_DISABLE"] = "1"
    given = options.parse_args(arguments)
    too_long = measure(given.chapters, given.results)
    if too_long:
        message = f"error: {', '.join(too_long)} took longer than {LIMIT} s; make the quick budget smaller."
        print(message, file=sys.stderr)
    return bool(too_long)


if __name__ == "__main__":
    sys.exit(main())
