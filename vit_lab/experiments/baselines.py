"""What a trained model must be measured against."""

import numpy as np
from torch import Tensor

from vit_from_scratch.data.dataset import ImageData


def nearest_neighbour_accuracy(data: ImageData, neighbours: int = 3) -> float:
    """Classify each test image by a vote of the training images nearest to it, pixel by pixel.

    Nothing is learnt and nothing chosen, so training and validation images both vote.

    Args:
        data: the images; distances are Euclidean, between bytes.
        neighbours: how many vote.

    Returns:
        The share of test images classified rightly, 0 to 1.
    """
    from sklearn.neighbors import KNeighborsClassifier  # imported here: it takes half a second

    def pixels(images: Tensor) -> np.ndarray:
        return images.flatten(1).cpu().numpy().astype(np.float32)  # (N, C H W)

    classifier = KNeighborsClassifier(n_neighbors=neighbours)
    images = np.concatenate([pixels(data.train_images), pixels(data.validation_images)])
    labels = np.concatenate([data.train_labels.cpu().numpy(), data.validation_labels.cpu().numpy()])
    classifier.fit(images, labels)
    return float(classifier.score(pixels(data.test_images), data.test_labels.cpu().numpy()))
