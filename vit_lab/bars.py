"""Text bars over what a command goes through."""

import sys
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any, TypeVar

from vit_from_scratch.progress import progress_shown

if TYPE_CHECKING:
    from torch import Tensor

T = TypeVar("T")
Batch = tuple["Tensor", "Tensor"]


def with_bar(
    items: Iterable[T], total: int, title: str, unit: str, size: Callable[[T], int] = lambda item: 1
) -> Iterator[T]:
    """Yield items while a text bar shows how many are done and how long the rest will take.

    The bar disappears when the items end; there is none for a single one, or if `progress_shown` says no.

    Args:
        items: what is gone through.
        total: how many there are, counted as `size` does.
        title: what is being done, for instance "measuring".
        unit: what is counted, for instance "images".
        size: for how many an item counts, for instance the images of a batch.
    """
    from tqdm import tqdm  # imported here: commands that need no bar answer sooner

    look: Any = {"desc": title, "unit": f" {unit}", "leave": False, "dynamic_ncols": True}
    with tqdm(total=total, disable=total < 2 or not progress_shown(), **look) as bar:
        for item in items:
            yield item
            bar.update(size(item))


def images_with_bar(batches: Iterable[Batch], images: int, title: str) -> Iterator[Batch]:
    """Yield batches of images and labels while a bar counts the images, of which there are so many."""
    return with_bar(batches, images, title, "images", lambda batch: len(batch[1]))


def say(line: object) -> None:
    """Print a line to the standard output, above a bar if there is one."""
    from tqdm import tqdm

    tqdm.write(str(line), file=sys.stdout)
