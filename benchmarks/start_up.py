"""How long does a command take to answer?

    python benchmarks/start_up.py
    python benchmarks/start_up.py --repeats 10

Starts each command several times, in a process of its own, and prints the best wall time and the best
processor time, user and system. Commands that need no model import no PyTorch, which alone takes seconds.
"""

import argparse
import os
import platform
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from PIL import Image

COMMANDS = (
    "--help",
    "recipes",
    "train --recipe digits --show",
    "train --recipe digits --set model.dmi=3",
    "cost B/16",
    "predict picture.png",
)


def once(command: str, folder: str) -> tuple[float, float]:
    """Run a command in a folder and return its wall time and its processor time in seconds."""
    before, start = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    done = subprocess.run(
        [sys.executable, "-m", "vit_lab", *command.split()], cwd=folder, capture_output=True
    )
    wall, after = time.perf_counter() - start, resource.getrusage(resource.RUSAGE_CHILDREN)
    if b"Traceback" in done.stderr:
        raise RuntimeError(done.stderr.decode())
    return wall, after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime


def main() -> None:
    """Run from the command line."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    options.add_argument("--repeats", type=int, default=5)
    repeats = options.parse_args().repeats
    print(
        f"{platform.processor() or platform.machine()}, {os.cpu_count()} cores, "
        f"Python {platform.python_version()}"
    )
    print(f"best of {repeats:<35}  wall time  processor time")
    with tempfile.TemporaryDirectory() as folder:
        Image.radial_gradient("L").save(Path(folder) / "picture.png")
        for command in COMMANDS:
            once(command, folder)  # fills the disk's cache
            walls, processor = zip(*(once(command, folder) for _ in range(repeats)), strict=True)
            print(f"vit {command:<39}  {min(walls):7.2f} s  {min(processor):12.2f} s")


if __name__ == "__main__":
    main()
