"""`vit features`: what a frozen model makes of a data set, as a file."""

import argparse
from typing import Any

from vit_from_scratch.errors import InputError
from vit_from_scratch.paths import own_path
from vit_lab.cli.options import add_data_dir, add_device, chosen_device, refuse_existing
from vit_lab.cli.weights import add_weights
from vit_lab.experiments.suited import DATA_NAMES
from vit_lab.runs.trained_models import open_model

PARTS = ("train", "validation", "test")


def add_parser(commands: Any) -> None:
    """Add `features` to the commands."""
    parser = commands.add_parser(
        "features",
        help="write a frozen model's features of a data set to a file",
        description="Run a trained model over one part of a data set and write one vector for each image, "
        "with labels, to FILE.safetensors (which `vit probe` reads) or FILE.npy. Images are not augmented.",
    )
    add_weights(parser, default=None)
    parser.add_argument("--data", metavar="NAME", required=True, help=", ".join(DATA_NAMES))
    add_data_dir(parser)
    parser.add_argument("--part", choices=PARTS, default="train", help="of the data set (default: train)")
    parser.add_argument(
        "--image-size", type=int, metavar="S", help="side in pixels (default: the model's own)"
    )
    parser.add_argument(
        "--layer", type=int, metavar="N", help="0 to L (default: normalised, as the head reads)"
    )
    parser.add_argument(
        "--token",
        choices=("class", "mean"),
        help="class token or mean of the patches (default: what the head reads)",
    )
    parser.add_argument("--out", type=own_path, required=True, metavar="FILE")
    add_device(parser)
    parser.set_defaults(run=features_command)


def features_command(options: argparse.Namespace) -> None:
    """Carry out `vit features`."""
    from vit_lab.features.feature_files import labels_path, write_features

    files = [options.out] if options.out.suffix == ".safetensors" else [options.out, labels_path(options.out)]
    refuse_existing(files)
    device = chosen_device(options.device)
    from vit_lab.features.extraction import features_of

    if options.image_size is not None and options.image_size < 1:
        raise InputError(f"--image-size {options.image_size}: expected a side in pixels, 1 or more.")
    trained = open_model(options.weights)
    features = features_of(
        trained,
        options.data,
        options.part,
        data_dir=options.data_dir,
        image_size=options.image_size,
        layer=options.layer,
        token=options.token,
        device=device,
    )
    written = write_features(options.out, features)
    count, width = features.values.shape
    print(f"{' and '.join(map(str, written))}: {count:,} images, {width} values each")
