"""`vit predict`: what is in a picture."""

import argparse
from pathlib import Path
from typing import Any

import torch

from vit_from_scratch.cli.weights import add_weights, chosen_model
from vit_from_scratch.errors import InputError
from vit_from_scratch.training.photos import load_photo


def add_parser(commands: Any) -> None:
    """Add `predict` to the commands."""
    parser = commands.add_parser(
        "predict",
        help="name what is in pictures",
        description="Print the most probable classes of each picture.",
    )
    parser.add_argument("images", nargs="+", type=Path, metavar="IMAGE")
    add_weights(parser)
    parser.add_argument("--top", type=int, default=3, metavar="K", help="classes to print (default: 3)")
    parser.add_argument(
        "--attention", action="store_true", help="also save where attention falls: IMAGE.attention.png"
    )
    parser.set_defaults(run=predict_command)


@torch.no_grad()
def predict_command(options: argparse.Namespace) -> None:
    """Carry out `vit predict`; the other pictures are still read when one cannot be."""
    model, names, scaling = chosen_model(options.weights)
    if not 1 <= options.top <= len(names):
        raise InputError(
            f"--top {options.top}: expected 1 to {len(names)}, the classes of {options.weights}."
        )
    failures = []
    for path in options.images:
        try:
            photo = load_photo(path, model.config.image_shape, model.config.channels)
        except InputError as error:
            failures.append(str(error))
            continue
        shares = model(scaling(255 * photo[None])).softmax(dim=-1)[0]
        best = shares.topk(options.top)
        found = ", ".join(
            f"{names[i]} {share:.1%}" for share, i in zip(*map(torch.Tensor.tolist, best), strict=True)
        )
        print(f"{path}: {found}")
        if options.attention:
            from vit_from_scratch.cli.inspect import save_attention  # imported here: it starts matplotlib

            print(f"  {save_attention(model, scaling, photo, path.with_suffix('.attention.png'))}")
    if failures:
        raise InputError(" ".join(failures))
