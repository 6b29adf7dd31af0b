"""`vit probe`: classifiers on files of frozen features."""

import argparse
from typing import Any

from vit_from_scratch.errors import InputError
from vit_from_scratch.paths import own_path

METHODS = ("linear", "neighbours", "few-shot")

EPILOG = """\
example:
  for part in train validation test; do
    vit features --weights tiny-imagenet --data digits --part $part --out $part.safetensors
  done
  vit probe --train train.safetensors --validation validation.safetensors --test test.safetensors"""


def add_parser(commands: Any) -> None:
    """Add `probe` to the commands."""
    parser = commands.add_parser(
        "probe",
        help="measure frozen features by simple classifiers",
        description="Fit classifiers on one file of features and measure them on another: logistic "
        "regression (its penalty chosen on the validation features), a vote of the nearest neighbours, and "
        "few-shot least squares as in the paper (section 4.1).",
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    for name in ("train", "validation", "test"):
        needed = name != "validation"
        parser.add_argument(
            f"--{name}", type=own_path, required=needed, metavar="FILE", help=f"features of the {name} images"
        )
    parser.add_argument("--methods", nargs="+", choices=METHODS, help="default: all that can be computed")
    parser.add_argument("--neighbours", type=int, default=20, metavar="K", help="that vote (default: 20)")
    parser.add_argument(
        "--shots", type=int, nargs="+", default=[5], metavar="K", help="images a class (default: 5)"
    )
    parser.add_argument("--draws", type=int, default=10, metavar="N", help="of those images (default: 10)")
    parser.set_defaults(run=probe_command)


def probe_command(options: argparse.Namespace) -> None:
    """Carry out `vit probe`."""
    methods = options.methods or [m for m in METHODS if m != "linear" or options.validation is not None]
    if "linear" in methods and options.validation is None:
        raise InputError(
            "the linear probe chooses its penalty on --validation FILE: expected one, or other methods."
        )
    from vit_from_scratch.training.few_shot import check_shots, few_shot_accuracy
    from vit_lab.features.feature_files import check_other_images, check_same_model, read_features
    from vit_lab.features.probes import check_neighbours, linear_probe, neighbours_accuracy

    paths = [path for path in (options.train, options.validation, options.test) if path is not None]
    files = [(path, read_features(path)) for path in paths]
    check_same_model(files)
    check_other_images(files)
    labelled = {path: (features.values, features.labels) for path, features in files}
    train, test = labelled[options.train], labelled[options.test]
    names = files[0][1].origin.class_names  # of the training features
    shots_asked = options.shots if "few-shot" in methods else ()
    for shots in shots_asked:  # before anything is computed
        check_shots(train[1], shots, options.draws, names)
    if "neighbours" in methods:
        check_neighbours(options.neighbours, len(train[0]))
    if "linear" in methods:
        accuracy, strength = linear_probe(train, labelled[options.validation], test)
        print(f"linear probe: {accuracy:.4f} (C = {strength:g})")
    if "neighbours" in methods:
        accuracy = neighbours_accuracy(train, test, options.neighbours)
        print(f"{options.neighbours} nearest neighbours: {accuracy:.4f}")
    for shots in shots_asked:
        found = few_shot_accuracy(train, test, shots, options.draws, class_names=names)
        low, high = found.interval
        interval = f"95 % interval {low:.4f} to {high:.4f}, {options.draws} draws"
        spread = interval if options.draws > 1 else "one draw, so no interval"
        print(f"{shots}-shot: {found.mean:.4f} ({spread})")
