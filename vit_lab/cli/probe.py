"""`vit probe`: how well simple classifiers do on a frozen model's features."""

import argparse
from typing import Any

from vit_from_scratch.errors import InputError
from vit_from_scratch.settings import require
from vit_lab.cli.options import add_command, add_shared, chosen_device
from vit_lab.runs.trained_models import open_model

METHODS = ("linear", "neighbours", "few-shot")


def add_parser(commands: Any) -> None:
    """Add `probe` to the commands."""
    parser = add_command(
        commands,
        "probe",
        run,
        help="measure a frozen model's features by simple classifiers",
        description="Run a trained model over a data set, without augmentation, and fit classifiers to the "
        "features of its training images, measured on its test images: logistic regression (its penalty "
        "chosen on held-out images), a vote of the nearest neighbours, and few-shot least squares as in the "
        "paper (section 4.1).",
        epilog="example:\n  vit probe --weights tiny-imagenet --data digits --methods few-shot --shots 1 5",
    )
    add_shared(parser, "--weights", "--data", "--data-dir", "--image-size", "--device")
    add = parser.add_argument
    add("--layer", type=int, metavar="N", help="0 to L (default: normalised, as the head reads)")
    about = "class token or mean of the patches (default: what the head reads)"
    add("--token", choices=("class", "mean"), help=about)
    add("--methods", nargs="+", choices=METHODS, help="default: all (linear needs held-out images)")
    add("--neighbours", type=int, default=20, metavar="K", help="that vote (default: 20)")
    add("--shots", type=int, nargs="+", default=[5], metavar="K", help="images a class (default: 5)")
    add("--draws", type=int, default=10, metavar="N", help="random choices of them (default: 10)")


def run(options: argparse.Namespace) -> None:
    """Carry out `vit probe`, beginning with what takes the least time."""
    device = chosen_device(options.device)
    trained = open_model(options.weights)
    from vit_from_scratch.training.few_shot import check_shots, few_shot_accuracy
    from vit_lab.probes import Frozen, linear_probe, neighbours_accuracy

    asked = {name: getattr(options, name) for name in ("data_dir", "image_size", "layer", "token")}
    frozen = Frozen(trained, options.data, device=device, **asked)
    data, names = frozen.data, frozen.data.class_names
    held_out = data.size_of("validation") > 0
    methods = options.methods or [method for method in METHODS if method != "linear" or held_out]
    if "linear" in methods and not held_out:
        raise InputError(
            f"the linear probe chooses its penalty on held-out images, and {options.data} has none: expected "
            "other --methods."
        )
    if "neighbours" in methods:
        expected = f"1 to {data.training_size:,}, the images that can vote"
        require(1 <= options.neighbours <= data.training_size, "neighbours", options.neighbours, expected)
    train = frozen.features("train")
    shots_asked = options.shots if "few-shot" in methods else ()
    for shots in shots_asked:  # before the others are computed
        check_shots(train[1], shots, options.draws, names)
    test = frozen.features("test")
    print(f"{len(train[0]):,} training and {len(test[0]):,} test images, {train[0].shape[1]} values each")
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
        accuracy, strength = linear_probe(train, frozen.features("validation"), test)
        print(f"linear probe: {accuracy:.4f} (C = {strength:g})")
