"""Run the studies behind the page of claims, where they stopped, and say how many minutes are left.

    python tools/run_experiments.py --data-dir DEST [--only transfer_scans patch_size] [--show]

Each study is run as `vit study` runs it: what its result holds is kept, the rest is trained, and the result
is written anew after it. A stopped run goes on with the same command. The minutes are what each study took,
or was planned with, on two CPU cores with bfloat16 units, two runs at a time.
"""

import argparse
import subprocess
import sys
from pathlib import Path

from vit_lab.experiments.records import Row
from vit_lab.experiments.study import Study, load_study
from vit_lab.experiments.summaries import read_summary

RESULTS = Path(__file__).resolve().parent.parent / "vit_lab/results"

USUAL = {
    "depth_width_rates": 65,
    "depth_width": 50,
    "small_data_rates": 15,
    "small_data": 110,
    "small_data_without": 100,
    "transfer_scans": 16,
    "transfer_photos": 92,
    "cifar10_resolution": 21,
    "positions": 95,
    "class_token": 30,
    "patch_size": 48,
    "label_smoothing": 42,
    "resnet_optimiser": 95,
    "scaling": 60,
    "hybrids_by_cost": 55,
}
"""The studies, in the order in which they are run, and their minutes."""

LONGER = {
    "imagenette_resolution": 220,
    "transfer_adamw": 320,
    "data_hunger": 340,
    "scratch_regularised": 380,
    "data_hunger_tiny": 600,
}
"""Studies that are run only where they are named, and their minutes.

`fold_causes` and `transfer_longer`, with many hours on Tiny-ImageNet, want a GPU and `vit study`.
"""


def done(study: Study, rows: list[Row]) -> float:
    """Return the share of a study's rows that are there, with all its seeds and rates."""
    there = {(row.task, row.name): row for row in rows}
    planned = {(one.task, one.name): one.rates for one in study.variants()}
    whole = [row in there and there[row].is_whole(study.seeds, rates) for row, rates in planned.items()]
    return sum(whole) / len(planned)


def main() -> None:
    """Run from the command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data-dir", help="folder that holds the data sets")
    parser.add_argument(
        "--only", nargs="*", action="extend", default=[], metavar="NAME", help="these alone, long ones too"
    )
    parser.add_argument("--show", action="store_true", help="say what is left, and run nothing")
    given = parser.parse_args()
    minutes = USUAL | LONGER
    unknown = sorted(set(given.only) - set(minutes))
    if unknown:
        parser.error(f"no experiment {', '.join(unknown)}: expected some of {', '.join(minutes)}")
    chosen = given.only or list(USUAL)
    shares = {name: done(load_study(name), read_summary(RESULTS / f"{name}.json")[1]) for name in chosen}
    left = {name: round(minutes[name] * (1 - share)) for name, share in shares.items()}
    for name in chosen:
        print(f"{name:22} {shares[name]:4.0%} done, about {left[name]} minutes left")
    print(f"{'together':22} about {sum(left.values())} minutes left")
    for name in chosen:
        if shares[name] < 1 and not given.show:
            where = ["--data-dir", given.data_dir] if given.data_dir else []
            into = ["--results", str(RESULTS / f"{name}.json"), "--add-to-results"]
            command = [sys.executable, "-m", "vit_lab", "study", name, "--at-once", "2", *where, *into]
            if subprocess.run(command, check=False).returncode:
                sys.exit(f"{name} stopped; the same command goes on with it.")


if __name__ == "__main__":
    main()
