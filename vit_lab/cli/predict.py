"""`vit predict`: what is in a picture."""

import argparse
from pathlib import Path
from typing import Any

from vit_from_scratch.errors import InputError
from vit_lab.bars import say, with_bar
from vit_lab.cli.options import add_command, weights_help
from vit_lab.runs.trained_models import CLASSIFIERS, open_classifier


def add_parser(commands: Any) -> None:
    """Add `predict` to the commands."""
    parser = add_command(
        commands,
        "predict",
        run,
        help="name what is in pictures",
        description="Print each picture's most probable classes. `vit inspect` draws where a model looks.",
    )
    parser.add_argument("images", nargs="+", type=Path, metavar="IMAGE")
    about = f"{weights_help(CLASSIFIERS)} (default: tiny-imagenet)"
    parser.add_argument("--weights", metavar="NAME", default="tiny-imagenet", help=about)
    about = "classes to print (default: 3, or as many as there are)"
    parser.add_argument("--top", type=int, metavar="K", help=about)


def run(options: argparse.Namespace) -> None:
    """Carry out `vit predict`; the other pictures are still read when one cannot be."""
    trained = open_classifier(options.weights)
    model, names = trained.model, trained.class_names
    top = min(3, len(names)) if options.top is None else options.top
    if not 1 <= top <= len(names):
        raise InputError(f"--top {top}: expected 1 to {len(names)}, the classes of {options.weights}.")
    import torch

    from vit_from_scratch.data import load_photo

    failures = []
    for path in with_bar(options.images, len(options.images), "naming", "pictures"):
        try:
            photo = load_photo(path, model.config.image_shape, model.config.channels)
        except InputError as error:
            failures.append(str(error))
            continue
        with torch.no_grad():
            shares = model(trained.scaling.scaled(255 * photo[None])).softmax(dim=-1)[0]
        if not shares.isfinite().all():
            raise InputError(
                f"--weights {options.weights}: {path} gives probabilities that are not finite: expected a "
                "trained model. Copy or train it again."
            )
        best = zip(*(values.tolist() for values in shares.topk(top)), strict=True)
        say(f"{path}: {', '.join(f'{names[i]} {share:.1%}' for share, i in best)}")
    if failures:
        raise InputError(" ".join(failures))
