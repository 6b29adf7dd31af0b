"""Which training images are held out for validation, and which are kept when only some are wanted."""

import torch
from torch import Tensor

from vit_from_scratch.data.config import DataConfig
from vit_from_scratch.errors import InputError

USUAL_SHARE, USUAL_MOST = 0.1, 10_000
"""Share of a folder's training photos that is held out for validation unless told otherwise, and the most."""


def usual_size(labels: Tensor) -> int:
    """Return how many of a folder's training photos are held out for validation unless told otherwise.

    Labels (N,) give a tenth, at least a photo for each class and at most 10,000; none where that would be
    more than a quarter or a class has a single photo.
    """
    counts = labels.unique(return_counts=True)[1]
    size = max(len(counts), min(int(USUAL_SHARE * len(labels)), USUAL_MOST))
    return size if counts.min() >= 2 and size <= len(labels) / 4 else 0


def hold_out(labels: Tensor, config: DataConfig, published: Tensor | None = None) -> tuple[Tensor, Tensor]:
    """Split the training images' indices into training and validation, with the same share of each class.

    Args:
        labels: of the training images, (N,).
        config: says how many.
        published: indices of those that were published for validation. They are never trained on, and are the
            validation part if there are as many as `config` says.

    Raises:
        InputError: fewer or more images asked for than the classes allow.
    """
    everything = torch.arange(len(labels))
    if published is not None and len(published):
        everything = everything[torch.isin(everything, published, invert=True)]
    if published is not None and 0 < len(published) == config.validation_size:
        train, validation = everything, published
    else:
        train, validation = _draw(everything, labels, config, "validation_size")
    if config.train_size is not None:
        train = _draw(train, labels, config, "train_size")[1]
    return train, validation


def _draw(indices: Tensor, labels: Tensor, config: DataConfig, option: str) -> tuple[Tensor, Tensor]:
    """Draw as many indices as an option of the configuration says; return the rest and the drawn."""
    size, classes = getattr(config, option), len(labels[indices].unique())
    if size == 0:
        return indices, indices[:0]
    if option == "train_size" and size == len(indices):
        return indices[:0], indices
    most = len(indices) - classes
    if not classes <= size <= most:
        none = f"all {len(indices):,}" if option == "train_size" else "0"
        raise InputError(
            f"data.{option} = {size}: {config.name} has {len(indices):,} images of {classes} classes for it. "
            f"Expected {none}" + (f", or {classes} to {most:,}." if classes <= most else ".")
        )
    few, counts = labels[indices].unique(return_counts=True)
    if counts.min() < 2:
        raise InputError(
            f"data.{option} = {size}: class {few[counts.argmin()].item()} of {config.name} has one image, "
            "which cannot be on both sides. Expected two or more of each class, or the option left out."
        )
    from sklearn.model_selection import train_test_split  # imported here: it takes half a second

    rest, drawn = train_test_split(
        indices.numpy(), test_size=size, stratify=labels[indices].numpy(), random_state=config.split_seed
    )
    return torch.from_numpy(rest).sort().values, torch.from_numpy(drawn).sort().values
