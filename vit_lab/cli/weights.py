"""Models that commands look at: by name, or from a file or a run's folder of your own."""

import argparse

from vit_lab.runs.trained_models import CLASSIFIERS, KNOWN


def add_weights(
    parser: argparse._ActionsContainer, default: str | None = "cifar10", classifier: bool = False
) -> None:
    """Add --weights.

    Args:
        parser: to what.
        default: what is taken without it; None if it must be given.
        classifier: whether it has to know classes.
    """
    parser.add_argument(
        "--weights",
        metavar="NAME",
        default=default,
        required=default is None,
        help=f"{', '.join(CLASSIFIERS if classifier else KNOWN)}, a .safetensors file or a run's folder"
        + (f" (default: {default})" if default else ""),
    )
