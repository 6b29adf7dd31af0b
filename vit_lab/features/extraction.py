"""Features of a whole part of a data set, from a trained model."""

import os
from dataclasses import replace

from vit_from_scratch.data.config import DataConfig, Part
from vit_from_scratch.data.datasets import open_dataset
from vit_from_scratch.training.features import Token, check_features, extract_features
from vit_from_scratch.training.fine_tuning import adapted
from vit_lab.bars import images_with_bar
from vit_lab.features.feature_files import Features, Origin
from vit_lab.runs.trained_models import TrainedModel


def features_of(
    trained: TrainedModel,
    data: str | DataConfig,
    part: Part = "train",
    data_dir: str | os.PathLike[str] | None = None,
    image_size: int | None = None,
    layer: int | None = None,
    token: Token | None = None,
    device: str = "cpu",
) -> Features:
    """Run a trained model over one part of a data set, without augmentation.

    Args:
        trained: the model.
        data: the data set, by name or with its settings; the images get the model's size (squares of its
            longer side) and scaling.
        part: which of its images.
        data_dir: where they are; see `load_dataset`.
        image_size: another side of the images in pixels; positions are then interpolated.
        layer: as in `image_features`.
        token: likewise.
        device: where to compute.

    Raises:
        InputError: the model has no such layer or token, a size that its patches do not divide, wrong data,
            or grey images for a model of scaled colours.
    """
    token = check_features(trained.model, layer, token)
    side = max(trained.model.config.image_shape) if image_size is None else image_size
    model = adapted(trained.model, side, 1)  # refuses a side that patches do not divide, before data are read
    config = data if isinstance(data, DataConfig) else DataConfig(data)
    config = replace(config, image_size=side, normalisation=trained.normalisation or "half")
    opened = open_dataset(config, data_dir)
    trained.check_colours(opened.image_shape[0], config.name)
    opened = opened.to(device)  # which enlarges and scales them, too
    if opened.image_shape[0] != model.config.channels:
        model = adapted(trained.model, side, 1, channels=opened.image_shape[0])
    batches = images_with_bar(opened.batches(part), opened.size_of(part), "features")
    values, labels = extract_features(model.to(device), batches, layer, token)
    origin = Origin(
        trained.sha256, trained.name, config.name, part, (side, side), layer, token, opened.class_names
    )
    return Features(values, labels, origin)
