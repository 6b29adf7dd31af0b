"""`vit predict`: what is in a picture."""

import argparse
from pathlib import Path
from typing import Any

from vit_from_scratch.errors import InputError
from vit_from_scratch.paths import own_path
from vit_from_scratch.progress import say, with_bar
from vit_lab.cli.figures import save_attention
from vit_lab.cli.options import refuse_existing, refuse_file
from vit_lab.cli.weights import add_weights
from vit_lab.runs.trained_models import open_classifier


def add_parser(commands: Any) -> None:
    """Add `predict` to the commands."""
    parser = commands.add_parser(
        "predict",
        help="name what is in pictures",
        description="Print the most probable classes of each picture.",
    )
    parser.add_argument("images", nargs="+", type=Path, metavar="IMAGE")
    add_weights(parser, classifier=True)
    parser.add_argument(
        "--top", type=int, metavar="K", help="classes to print (default: 3, or as many as there are)"
    )
    parser.add_argument(
        "--attention",
        action="store_true",
        help="also save where attention falls: cat.jpg gives cat.attention.png",
    )
    parser.add_argument(
        "--out", type=own_path, metavar="DIR", help="folder for those pictures (default: that of each IMAGE)"
    )
    parser.set_defaults(run=predict_command)


def predict_command(options: argparse.Namespace) -> None:
    """Carry out `vit predict`; the other pictures are still read when one cannot be."""
    targets = attention_files(options)
    trained = open_classifier(options.weights)
    model, names, scaling = trained.model, trained.class_names, trained.scaling
    top = min(3, len(names)) if options.top is None else options.top
    if not 1 <= top <= len(names):
        raise InputError(f"--top {top}: expected 1 to {len(names)}, the classes of {options.weights}.")
    import torch

    from vit_from_scratch.data import load_photo

    failures = []
    pictures = zip(options.images, targets, strict=True)
    for path, target in with_bar(pictures, len(targets), "naming", "pictures"):
        try:
            photo = load_photo(path, model.config.image_shape, model.config.channels)
        except InputError as error:
            failures.append(str(error))
            continue
        with torch.no_grad():
            shares = model(scaling(255 * photo[None])).softmax(dim=-1)[0]
        if not shares.isfinite().all():
            raise InputError(
                f"--weights {options.weights}: {path} gives probabilities that are not finite: expected a "
                "trained model. Copy or train it again."
            )
        best = shares.topk(top)
        found = ", ".join(
            f"{names[i]} {share:.1%}" for share, i in zip(*map(torch.Tensor.tolist, best), strict=True)
        )
        say(f"{path}: {found}")
        if target is not None:
            say(f"  {save_attention(model, scaling, photo, target)}")
    if failures:
        raise InputError(" ".join(failures))


def attention_files(options: argparse.Namespace) -> list[Path] | list[None]:
    """Return where each picture of attention goes; None for each, if none is wanted.

    Raises:
        InputError: one of them is there already, perhaps as an input, or two would be the same.
    """
    if not options.attention:
        if options.out is not None:
            raise InputError(f"--out {options.out} is for the pictures of --attention: expected both.")
        return [None] * len(options.images)
    if options.out is not None:
        refuse_file(options.out)
    targets = [(options.out or image.parent) / f"{image.stem}.attention.png" for image in options.images]
    refuse_existing(targets)
    return targets
