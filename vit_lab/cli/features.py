"""`vit features`: what a frozen model makes of a data set, as a file."""

import argparse
from typing import Any

from vit_from_scratch.errors import InputError
from vit_from_scratch.paths import own_path
from vit_lab.cli.options import add_command, add_shared, chosen_device, refuse_existing
from vit_lab.runs.trained_models import open_model

PARTS = ("train", "validation", "test")


def add_parser(commands: Any) -> None:
    """Add `features` to the commands."""
    parser = add_command(
        commands,
        "features",
        run,
        help="write a frozen model's features of a data set to a file",
        description="Run a trained model over one part of a data set and write one vector for each image, "
        "with labels, to a .safetensors file, which `vit probe` reads. Images are not augmented.",
    )
    add_shared(parser, "--weights", "--data", "--data-dir", "--image-size", "--device")
    parser.add_argument("--part", choices=PARTS, default="train", help="of the data set (default: train)")
    about = "0 to L (default: normalised, as the head reads)"
    parser.add_argument("--layer", type=int, metavar="N", help=about)
    about = "class token or mean of the patches (default: what the head reads)"
    parser.add_argument("--token", choices=("class", "mean"), help=about)
    parser.add_argument("--out", type=own_path, required=True, metavar="FILE.safetensors")


def run(options: argparse.Namespace) -> None:
    """Carry out `vit features`."""
    if options.out.suffix != ".safetensors":
        raise InputError(f"--out {options.out}: expected a name that ends in .safetensors.")
    refuse_existing([options.out], "name another file with --out FILE")
    device = chosen_device(options.device)
    trained = open_model(options.weights)
    from vit_lab.features.extraction import features_of
    from vit_lab.features.feature_files import write_features

    asked = {name: getattr(options, name) for name in ("part", "data_dir", "image_size", "layer", "token")}
    features = features_of(trained, options.data, device=device, **asked)
    write_features(options.out, features)
    count, width = features.values.shape
    print(f"{options.out}: {count:,} images, {width} values each")
