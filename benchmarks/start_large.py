"""How long until the first batch, with photos in a folder and in shards?

    python benchmarks/start_large.py                                 # 20,000 photos: about a minute
    python benchmarks/start_large.py --photos 1000000 --keep /disk/million

Writes one tiny JPEG many times, in class folders, and puts these into ten tar files. Then it opens each form,
and the tar files again with their index, as `vit train` does, in a process of its own, and takes the first
batch. `--keep` leaves the photos there for the next time. Times are wall time and, since a busy machine has
little effect on it, the processor time of that step. The disk's cache holds what was just written; a first
look at a disk takes longer, above all where files are opened one by one.
"""

import argparse
import io
import json
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

from vit_from_scratch.files import write_json
from vit_lab.runs.environment import environment

CLASSES, SIDE = 100, 32
STEPS = ("import", "open", "checksum of the data", "first batch")


def write_photos(root: Path, count: int) -> None:
    """Write a JPEG so many times, in class folders; what is there already stays."""
    file = io.BytesIO()
    pixels = np.random.default_rng(0).integers(256, size=(SIDE, SIDE, 3), dtype=np.uint8)
    Image.fromarray(pixels).save(file, "JPEG", quality=30)
    for label in range(CLASSES):
        folder = root / f"class{label:03d}"
        folder.mkdir(parents=True, exist_ok=True)
        there = len(os.listdir(folder))
        for number in range(there, count // CLASSES):
            (folder / f"{number:08d}.jpg").write_bytes(file.getvalue())


def pack(photos: Path, packed: Path) -> None:
    """Put the classes' folders into ten tar files."""
    packed.mkdir()
    for number, folder in enumerate(sorted(photos.iterdir())):
        with tarfile.open(packed / f"train-{number % 10}.tar", "a") as shard:
            shard.add(folder, folder.name)


def timed(step: Callable[[], Any]) -> tuple[Any, dict[str, float]]:
    """Return what a step returns, with its wall time and its processor time in seconds."""
    wall, processor = time.perf_counter(), time.process_time()
    result = step()
    seconds = {"wall": time.perf_counter() - wall, "processor": time.process_time() - processor}
    return result, seconds


def started(name: str) -> dict[str, dict[str, float]]:
    """Open a data set and take its first batch, photos read one by one; return the times of the steps."""

    def load() -> Any:
        import sklearn.model_selection
        import torch
        import torchvision.transforms.v2

        torch.set_num_threads(1)
        return sklearn, torchvision

    times = {}
    _, times["import"] = timed(load)
    from vit_from_scratch.data import Augmentation, DataConfig, open_dataset, reading
    from vit_lab.runs.fingerprints import data_fingerprint

    reading.LIMIT = 0  # a data set of this many tiny photos would be decoded whole
    data, times["open"] = timed(lambda: open_dataset(DataConfig(name, image_size=SIDE)))
    _, times["checksum of the data"] = timed(lambda: data_fingerprint(data))
    changes = Augmentation(flip=True, crop=(0.5, 1.0))
    _, times["first batch"] = timed(lambda: next(data.training_batches(64, changes, 0)))
    return times


def in_a_process(name: str) -> dict[str, dict[str, float]]:
    """Do the same in a process of its own."""
    done = subprocess.run([sys.executable, __file__, "--start", name], capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(done.stderr)
    return json.loads(done.stdout)


def measured(root: Path, count: int) -> dict[str, Any]:
    """Write, pack and open photos below a folder; return the times by form and step."""
    photos, packed = root / "photos", root / "packed"
    found: dict[str, Any] = {}
    _, found["write"] = timed(lambda: write_photos(photos, count))
    _, found["pack"] = timed(lambda: packed.exists() or pack(photos, packed))
    forms = {"folder": f"folder:{photos}", "shards": f"shards:{packed}", "again": f"shards:{packed}"}
    for form, name in forms.items():
        found[form] = in_a_process(name)
        print(f"{form:9}" + "".join(cell(found[form][step]) for step in STEPS), flush=True)
    return found


def cell(seconds: dict[str, float]) -> str:
    """Show wall and processor time."""
    return f"  {seconds['wall']:9.2f} {seconds['processor']:9.2f} s"


def main() -> None:
    """Measure and print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--photos", type=int, default=20_000)
    parser.add_argument("--keep", type=Path, metavar="DIR", help="write there, and leave it")
    parser.add_argument("--results", type=Path, help="also write everything to this JSON file")
    parser.add_argument("--start", metavar="NAME", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.start:
        print(json.dumps(started(options.start)))
        return
    root = options.keep or Path(tempfile.mkdtemp())
    print(f"{options.photos:,} photos" + "".join(f"  {step:>21}" for step in STEPS).removeprefix("  "))
    print("         " + "       wall  processor  " * len(STEPS))
    try:
        found = measured(root, options.photos)
    finally:
        if options.keep is None:
            shutil.rmtree(root)
    print(f"written in{cell(found['write'])}, packed in{cell(found['pack'])}")
    if options.results:
        write_json(options.results, {"photos": options.photos, "times": found, **environment(1, "cpu")})


if __name__ == "__main__":
    main()
