"""Classifiers on frozen features by scikit-learn: a linear probe, and a vote of the nearest neighbours."""

from typing import Any

from torch import Tensor

from vit_from_scratch.errors import InputError
from vit_from_scratch.training.few_shot import standardised

STRENGTHS = (1e-3, 1e-2, 1e-1, 1.0, 10.0)
"""The inverse penalties C that the linear probe tries."""

Labelled = tuple[Tensor, Tensor]
"""Features (N, D) and labels (N,)."""


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


def neighbours_accuracy(train: Labelled, test: Labelled, neighbours: int = 20) -> float:
    """Classify each test image by a vote of the training images whose features point in a similar direction.

    Args:
        train: the voters.
        test: to measure on.
        neighbours: how many vote, by cosine similarity, the nearer ones with more weight.

    Returns:
        The share classified correctly, 0 to 1.

    Raises:
        InputError: no neighbours, or more than voters.
    """
    from sklearn.neighbors import KNeighborsClassifier

    if not 1 <= neighbours <= len(train[0]):
        raise InputError(
            f"neighbours = {neighbours}: expected 1 to {len(train[0]):,}, the images that can vote."
        )
    classifier = KNeighborsClassifier(neighbours, metric="cosine", weights="distance")
    classifier.fit(train[0].float().numpy(), train[1].numpy())
    return float(classifier.score(test[0].float().numpy(), test[1].numpy()))
