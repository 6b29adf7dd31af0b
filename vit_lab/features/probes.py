"""Classifiers on frozen features by scikit-learn: a linear probe, and a vote of the nearest neighbours."""

from typing import Any

import numpy as np
from torch import Tensor

from vit_from_scratch.errors import InputError
from vit_from_scratch.inputs import require_labels, require_tensor
from vit_from_scratch.training.few_shot import standardised

STRENGTHS = (1e-3, 1e-2, 1e-1, 1.0, 10.0)
"""The inverse penalties C that the linear probe tries."""

Labelled = tuple[Tensor, Tensor]
"""Features (N, D) and labels (N,)."""


def linear_probe(train: Labelled, validation: Labelled, test: Labelled) -> tuple[float, float]:
    """Measure features by logistic regression on them.

    Features are standardised by those of the training images. The penalty is chosen on the validation
    features.

    Args:
        train: to fit on.
        validation: to choose the penalty on.
        test: to measure on, once.

    Returns:
        The test accuracy, 0 to 1, and the C that was chosen.

    Raises:
        InputError: features and labels that do not fit.
    """
    from sklearn.linear_model import LogisticRegression  # imported here: it takes half a second

    _check(train, validation, test)
    inputs = standardised(train[0], validation[0], test[0])
    fitted: list[tuple[float, float, Any]] = []
    for strength in STRENGTHS:
        model = LogisticRegression(C=strength, max_iter=300).fit(inputs[0].numpy(), train[1].numpy())
        held_out = float(model.score(inputs[1].numpy(), validation[1].numpy()))
        fitted.append((held_out, -strength, model))
    _, strength, model = max(fitted, key=lambda one: one[:2])
    return float(model.score(inputs[2].numpy(), test[1].numpy())), -strength


def neighbours_accuracy(train: Labelled, test: Labelled, neighbours: int = 20) -> float:
    """Classify each test image by a vote of the training images whose features point in a like direction.

    Args:
        train: the voters.
        test: to measure on.
        neighbours: how many vote, by cosine similarity, the nearer ones with more weight.

    Returns:
        The share classified rightly, 0 to 1.

    Raises:
        InputError: no neighbours or more than voters, or features and labels that do not fit.
    """
    from sklearn.neighbors import KNeighborsClassifier  # imported here: it takes half a second

    _check(train, test)
    check_neighbours(neighbours, len(train[0]))
    classifier = KNeighborsClassifier(neighbours, metric="cosine", weights="distance")
    classifier.fit(train[0].numpy().astype(np.float32), train[1].numpy())
    return float(classifier.score(test[0].numpy().astype(np.float32), test[1].numpy()))


def check_neighbours(neighbours: int, voters: int) -> None:
    """Refuse more neighbours than there are images that can vote, or none, before anything is computed.

    Raises:
        InputError: there are more, or none.
    """
    if not 1 <= neighbours <= voters:
        raise InputError(f"neighbours = {neighbours}: expected 1 to {voters:,}, the images that can vote.")


def _check(*parts: Labelled) -> None:
    """Refuse parts whose features and labels do not fit, or that have features of several widths."""
    classes = 1 + max((int(labels.max()) for _, labels in parts if len(labels)), default=0)
    for features, labels in parts:
        require_tensor(features, "features", "(N, D)")
        require_labels(labels, len(features), classes)
    widths = {features.shape[1:] for features, _ in parts}
    if len(widths) > 1:
        raise InputError(f"features of shapes {sorted(map(tuple, widths))}: expected those of one model.")
