"""What the tools that measure the shipped models share: their options, an interval, the file that ships."""

import argparse
import sys
from itertools import pairwise
from pathlib import Path
from typing import Any

from torch import Tensor

from vit_from_scratch.files import write_json
from vit_lab.runs.environment import environment

RESULTS = Path(__file__).resolve().parent.parent / "vit_lab/results"


def interval(values: Tensor) -> list[float]:
    """Return the mean of (N,) values and the ends of its interval of 95 %."""
    values = values.double()
    half = 1.96 * values.std() / len(values) ** 0.5
    return [values.mean().item(), (values.mean() - half).item(), (values.mean() + half).item()]


def options(doc: str | None) -> argparse.ArgumentParser:
    """Return a parser with `doc` as its help and the option --data-dir."""
    parser = argparse.ArgumentParser(description=doc, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data-dir", type=Path, help="folder that holds the data set", required=True)
    return parser


def write_result(name: str, found: dict[str, Any]) -> None:
    """Write what was found as the result NAME, with machine, versions, and the command without its paths."""
    paths = {"--data-dir": "DEST", "--after": "RESULT"}
    words = [paths.get(before, "RUN" if Path(word).is_dir() else word) for before, word in pairwise(sys.argv)]
    command = " ".join(["python", f"tools/{Path(sys.argv[0]).name}", *words])
    write_json(RESULTS / f"{name}.json", {"command": command, **found, **environment(device="cpu")})
