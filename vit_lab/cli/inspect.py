"""`vit inspect`: every figure of Part III for one picture."""

import argparse
from pathlib import Path
from typing import Any

from vit_from_scratch.paths import own_path
from vit_from_scratch.progress import say, with_bar
from vit_lab.cli.figures import FIGURES, save_figures
from vit_lab.cli.options import refuse_existing, refuse_file
from vit_lab.cli.weights import add_weights
from vit_lab.runs.trained_models import open_model


def add_parser(commands: Any) -> None:
    """Add `inspect` to the commands."""
    parser = commands.add_parser(
        "inspect",
        help="draw what a model sees in a picture",
        description="Write figures into a folder: the class token's attention in every layer and head, "
        "rollout, attention distance, the tokens' path through the layers, position similarity and embedding "
        "filters; and a page that shows where the patch under the pointer looks. What a model has no parts "
        "for is left out, and so is the page of a very large one.",
    )
    parser.add_argument("image", type=Path, metavar="IMAGE")
    add_weights(parser)
    parser.add_argument("--out", type=own_path, required=True, metavar="DIR", help="folder for the figures")
    parser.set_defaults(run=inspect_command)


def inspect_command(options: argparse.Namespace) -> None:
    """Carry out `vit inspect`."""
    refuse_file(options.out)
    refuse_existing(options.out / name for name in FIGURES)
    trained = open_model(options.weights)
    model = trained.model
    from vit_from_scratch.data import load_photo  # imported here: it takes seconds

    photo = load_photo(options.image, model.config.image_shape, model.config.channels)
    names = save_figures(model, trained.scaling, photo, options.out)
    for name in with_bar(names, len(FIGURES), "drawing", "figures"):
        say(options.out / name)
