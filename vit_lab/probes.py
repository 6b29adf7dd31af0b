"""A trained model's frozen features of a data set, and classifiers on them by scikit-learn."""

import os
from dataclasses import replace
from typing import Any

from torch import Tensor

from vit_from_scratch.data.config import DataConfig, Part
from vit_from_scratch.data.datasets import open_dataset
from vit_from_scratch.errors import InputError
from vit_from_scratch.training.features import Token, check_features, extract_features
from vit_from_scratch.training.few_shot import standardised
from vit_from_scratch.training.fine_tuning import adapted
from vit_lab.bars import images_with_bar
from vit_lab.runs.trained_models import TrainedModel

LARGEST = 1e18
"""What features may be at most: sums of squares of larger ones may be infinite in float32."""
STRENGTHS = (1e-3, 1e-2, 1e-1, 1.0, 10.0)
"""The inverse penalties C that the linear probe tries."""

Labelled = tuple[Tensor, Tensor]
"""Features (N, D), float32, and labels (N,)."""


class Frozen:
    """A trained model, and a data set that it makes features of, without augmentation.

    Attributes:
        model: the model, on the device.
        data: the opened data set, as the model takes its images.

    Args:
        trained: the model.
        data: the data set's name; the images get the model's size (squares of its longer side) and scaling.
        data_dir: where it is; see `load_dataset`.
        image_size: another side of the images in pixels; positions are then interpolated.
        layer: as in `image_features`.
        token: likewise.
        device: where to compute.

    Raises:
        InputError: the model has no such layer or token, a size that its patches do not divide, wrong data,
            or grey images for a model of scaled colours.
    """

    def __init__(
        self,
        trained: TrainedModel,
        data: str,
        data_dir: str | os.PathLike[str] | None = None,
        image_size: int | None = None,
        layer: int | None = None,
        token: Token | None = None,
        device: str = "cpu",
    ) -> None:
        """Open the data set and fit the model to its images."""
        self.name, self.layer = trained.name, layer
        self.token: Token = check_features(trained.model, layer, token)
        side = max(trained.model.config.image_shape) if image_size is None else image_size
        model = adapted(trained.model, side, 1)  # before data are read: the side may not fit
        config = replace(DataConfig(data), image_size=side, normalisation=trained.normalisation or "half")
        opened = open_dataset(config, data_dir)
        trained.check_colours(opened.image_shape[0], config.name)
        self.data = opened.to(device)  # which enlarges and scales them, too
        if self.data.image_shape[0] != model.config.channels:
            model = adapted(trained.model, side, 1, channels=self.data.image_shape[0])
        self.model = model.to(device)

    def features(self, part: Part) -> Labelled:
        """Return the features of one part of the data.

        Raises:
            InputError: there are no such images, or the features are such that nothing can be fitted to them.
        """
        batches = images_with_bar(self.data.batches(part), self.data.size_of(part), f"{part} features")
        values, labels = extract_features(self.model, batches, self.layer, self.token)
        if not (values.abs() <= LARGEST).all():
            raise InputError(
                f"features of {self.data.config.name} by {self.name} are not finite, or beyond "
                f"{LARGEST:g}: expected a trained model's. Take another model."
            )
        return values, labels


def linear_probe(train: Labelled, validation: Labelled, test: Labelled) -> tuple[float, float]:
    """Measure features by logistic regression, after standardising them by those of the training images.

    Args:
        train: to fit on.
        validation: to choose the penalty on.
        test: to measure on, once.

    Returns:
        The test accuracy, 0 to 1, and the C that was chosen.
    """
    from sklearn.linear_model import LogisticRegression

    inputs = [part.numpy() for part in standardised(train[0], validation[0], test[0])]
    labels = [part[1].numpy() for part in (train, validation, test)]
    best: tuple[float, float, Any] = (-1.0, 0.0, None)
    for strength in STRENGTHS:
        model = LogisticRegression(C=strength, max_iter=300).fit(inputs[0], labels[0])
        if (held_out := float(model.score(inputs[1], labels[1]))) > best[0]:
            best = held_out, strength, model
    _, strength, model = best
    return float(model.score(inputs[2], labels[2])), strength


def neighbours_accuracy(
    train: Labelled, test: Labelled, neighbours: int = 20, metric: str = "cosine", weights: str = "distance"
) -> float:
    """Classify each test image by a vote of the nearest training images: of similar directions, by default.

    Args:
        train: the voters.
        test: to measure on.
        neighbours: how many vote, of all.
        metric: what is near, as in scikit-learn.
        weights: how much a vote weighs, likewise; by default that of a nearer one more.

    Returns:
        The share classified correctly, 0 to 1.
    """
    from sklearn.neighbors import KNeighborsClassifier

    classifier = KNeighborsClassifier(neighbours, metric=metric, weights=weights)
    classifier.fit(train[0].float().numpy(), train[1].numpy())
    return float(classifier.score(test[0].float().numpy(), test[1].numpy()))
