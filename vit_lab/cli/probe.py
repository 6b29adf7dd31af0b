"""`vit probe`: classifiers on files of frozen features."""

import argparse
from typing import Any

from vit_from_scratch.errors import InputError
from vit_from_scratch.paths import own_path
from vit_lab.cli.options import add_command

METHODS = ("linear", "neighbours", "few-shot")

EPILOG = """\
example:
  for part in train validation test; do
    vit features --weights tiny-imagenet --data digits --part $part --out $part.safetensors
  done
  vit probe --train train.safetensors --validation validation.safetensors --test test.safetensors"""


def add_parser(commands: Any) -> None:
    """Add `probe` to the commands."""
    parser = add_command(
        commands,
        "probe",
        run,
        help="measure frozen features by simple classifiers",
        description="Fit classifiers on one file of features and measure them on another: logistic "
        "regression (its penalty chosen on the validation features), a vote of the nearest neighbours, and "
        "few-shot least squares as in the paper (section 4.1).",
        epilog=EPILOG,
    )
    add = parser.add_argument
    for name in ("train", "validation", "test"):
        needed, about = name != "validation", f"features of the {name} images"
        add(f"--{name}", type=own_path, required=needed, metavar="FILE", help=about)
    add("--methods", nargs="+", choices=METHODS, help="default: all that can be computed")
    add("--neighbours", type=int, default=20, metavar="K", help="that vote (default: 20)")
    add("--shots", type=int, nargs="+", default=[5], metavar="K", help="images a class (default: 5)")
    add("--draws", type=int, default=10, metavar="N", help="of those images (default: 10)")


def run(options: argparse.Namespace) -> None:
    """Carry out `vit probe`, beginning with what takes the least time."""
    methods = options.methods or [m for m in METHODS if m != "linear" or options.validation is not None]
    if "linear" in methods and options.validation is None:
        raise InputError(
            "the linear probe chooses its penalty on --validation FILE: expected one, or other methods."
        )
    from vit_from_scratch.training.few_shot import check_shots, few_shot_accuracy
    from vit_lab.features.feature_files import check_comparable, read_features
    from vit_lab.features.probes import linear_probe, neighbours_accuracy

    paths = [path for path in (options.train, options.validation, options.test) if path is not None]
    files = [(path, read_features(path)) for path in paths]
    check_comparable(files)
    train, *validation, test = [(features.values, features.labels) for _, features in files]
    names = files[0][1].origin.class_names
    shots_asked = options.shots if "few-shot" in methods else ()
    for shots in shots_asked:  # before anything is computed
        check_shots(train[1], shots, options.draws, names)
    if "neighbours" in methods:
        accuracy = neighbours_accuracy(train, test, options.neighbours)
        print(f"{options.neighbours} nearest neighbours: {accuracy:.4f}")
    for shots in shots_asked:
        found = few_shot_accuracy(train, test, shots, options.draws, class_names=names)
        low, high = found.interval
        interval = f"95 % interval {low:.4f} to {high:.4f}, {options.draws} draws"
        spread = interval if options.draws > 1 else "one draw, so no interval"
        print(f"{shots}-shot: {found.mean:.4f} ({spread})")
    if "linear" in methods:
        accuracy, strength = linear_probe(train, validation[0], test)
        print(f"linear probe: {accuracy:.4f} (C = {strength:g})")
