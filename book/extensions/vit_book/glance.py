"""The directive `glance`: three numbers of the book's own runs, each with the page that it comes from."""

from sphinx.application import Sphinx

from vit_book.recipes import add_table
from vit_lab import load_result as result


def tiles() -> list[tuple[str, str]]:
    """Each number, and what it is the number of.

    >>> [number.endswith("%") for number, _ in tiles()]
    [True, True, True]
    """
    digits, photos = result("digits"), result("cifar10-half-hour-remedies")
    kinds = result("tiny-imagenet_weights")
    return [
        (
            f"{digits['test_accuracy_mean']:.1%}",
            f"of unseen handwritten digits read right, after {digits['seconds_max']:.0f} seconds of training "
            "on a CPU: {doc}`../notebooks/08_first_training_run`",
        ),
        (
            f"{photos['test_accuracy_mean']:.1%}",
            f"of CIFAR-10's test photos after {photos['seconds_max'] / 60:.0f} minutes on two CPU cores, by "
            f"a ViT without convolutions, from scratch{', one seed' * (len(photos['seeds']) == 1)}: "
            "{doc}`../notebooks/09_small_data`",
        ),
        (
            f"{kinds['test_accuracy']:.1%}",
            f"of {kinds['test_images']:,} photos put into the right one of 200 classes, by the model that "
            "Part III looks into: {doc}`../notebooks/13_attention_maps`",
        ),
    ]


def glance() -> list[str]:
    """Write the numbers side by side."""
    written = ["::::{container} glance"]
    for number, words in tiles():
        written += [":::{container} tile", f"**{number}**", "", words, ":::"]
    return [*written, "::::"]


def setup(app: Sphinx) -> None:
    """Register the directive."""
    add_table(app, "glance", glance)
