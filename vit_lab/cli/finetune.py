"""`vit finetune`: a trained model for other images and other classes."""

import argparse
from typing import Any

from vit_from_scratch.errors import InputError
from vit_from_scratch.settings import merged
from vit_lab.cli.options import add_command, add_shared
from vit_lab.cli.training import add_training, asked_changes, train_recipe
from vit_lab.experiments.suited import RATES, fine_tuning_recipe

EPILOG = f"""\
examples:
  vit finetune --weights tiny-imagenet --data cifar10 --data-dir DEST
  vit finetune --weights tiny-imagenet --data folder:photos --image-size 128
  vit finetune --weights runs/try --data digits --sweep --seeds 0 1 2

Settings are the paper's (appendix B.1.1): SGD with momentum, no weight decay, cosine decay, clipping, a zero
head. --sweep tries learning rates on held-out images ({", ".join(f"{rate:g}" for rate in RATES)} unless some
are given) and tests the best one. A run that was stopped goes on with the same command."""


def add_parser(commands: Any) -> None:
    """Add `finetune` to the commands."""
    parser = add_command(
        commands,
        "finetune",
        run,
        help="train a pre-trained model further, on other images",
        description="Give a trained model a new head, train it on a data set, test it once, and keep "
        "everything in a folder.",
        epilog=EPILOG,
    )
    what = parser.add_argument_group("what to run")
    add_shared(what, "--weights", "--data", "--data-dir", "--image-size")
    about = "choose the learning rate on held-out images"
    what.add_argument("--sweep", type=float, nargs="*", metavar="RATE", help=about)
    add_training(parser)


def run(options: argparse.Namespace) -> None:
    """Carry out `vit finetune`."""
    changes = asked_changes(options)
    if options.image_size is not None:
        changes = merged(changes, {"data": {"image_size": options.image_size}})
    swept = options.sweep is not None
    if swept and ("learning_rate" in changes.get("train", {}) or options.keep_epochs):
        raise InputError("--sweep with --lr or --keep-epochs: expected --sweep first, then a run with --lr.")
    recipe, why = fine_tuning_recipe(options.weights, options.data, changes)
    many = swept or options.seeds is not None or options.results is not None
    train_recipe(recipe, why, options, many, (options.sweep or RATES) if swept else ())
