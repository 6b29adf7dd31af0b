"""Measure what the features of every layer are worth on CIFAR-10, and write a result that ships.

    python tools/measure_features.py --data-dir DEST [--images 10000] [--masked]

The shipped Tiny-ImageNet model and an untrained one of the same architecture, or with --masked the two of
that architecture that learned without labels, describe training, held-out and test photos, layer by layer, by
the class token and by the mean of the patches. Few-shot classifiers draw
from the training photos, the linear probe chooses its penalty on the held-out ones; both are measured on the
test photos. Pixels get the same classifiers. Which layer is best is read off the held-out photos.
"""

from typing import Any

import torch
from measuring import options, write_result
from torch import Tensor

from vit_from_scratch import VisionTransformer
from vit_from_scratch.data import DataConfig, ImageData, open_dataset
from vit_from_scratch.model.modes import evaluating
from vit_from_scratch.pretrained import load_pretrained
from vit_from_scratch.pretrained.releases import SHIPPED
from vit_from_scratch.training.few_shot import few_shot_accuracy
from vit_lab.probes import linear_probe
from vit_lab.runs.trained_models import open_model

TOKENS = ("class", "mean")
SHOTS, DRAWS = (1, 5, 20, 50, 100), 10
PARTS = ("train", "validation", "test")


@torch.no_grad()
def described(model: VisionTransformer, data: ImageData, part: str) -> Tensor:
    """Return the features of a part at every layer, (layers, 2, N, D): z_0 to z_L, and the normalised z_L."""
    found = []
    with evaluating(model):
        for images, _ in data.batches(part, 250):
            tokens = model.tokens(model.patch_embedding(images))
            layers = [tokens]
            for block in model.encoder.blocks:
                layers.append(block(layers[-1])[0])
            layers.append(model.encoder.norm(layers[-1]))
            found.append(torch.stack([torch.stack([z[:, 0], z[:, 1:].mean(1)]) for z in layers]))
    return torch.cat(found, dim=2)


def measured(parts: dict[str, tuple[Tensor, Tensor]]) -> dict[str, Any]:
    """Return few-shot accuracies with their intervals, on held-out and on test photos."""
    row = {}
    for shots in SHOTS:
        held_out, tested = (
            few_shot_accuracy(parts["train"], parts[part], shots, DRAWS) for part in PARTS[1:]
        )
        low, high = tested.interval
        row[str(shots)] = {"validation": held_out.mean, "test": tested.mean, "low": low, "high": high}
    return row


def chosen_models(masked: bool) -> dict[str, VisionTransformer]:
    """Return the models to measure: the two without labels, or the trained one and an untrained."""
    if masked:
        return {kind: load_pretrained(f"tiny-imagenet-masked-{kind}") for kind in ("patches", "pixels")}
    trained = load_pretrained("tiny-imagenet")
    torch.manual_seed(0)
    return {"trained": trained, "untrained": VisionTransformer(trained.config)}


def main() -> None:
    """Measure and write."""
    parser = options(__doc__)
    parser.add_argument("--images", type=int, default=10_000, help="training photos")
    parser.add_argument("--masked", action="store_true", help="the models without labels")
    given = parser.parse_args()
    torch.set_num_threads(1)
    name = "features_masked" if given.masked else "features_tiny_imagenet"
    models = chosen_models(given.masked)
    config = DataConfig("cifar10", validation_size=2_000, train_size=given.images, image_size=64)
    data = open_dataset(config, given.data_dir)
    assert isinstance(data, ImageData)
    labels = {part: getattr(data, f"{part}_labels") for part in PARTS}
    result: dict[str, Any] = {
        "model_sha256": {
            one: open_model(one).sha256
            for one, objective in SHIPPED.items()
            if one.startswith("tiny-imagenet") and (objective != "classes") == given.masked
        },
        "data": {"name": "cifar10", "image_size": 64} | {part: len(labels[part]) for part in PARTS},
        "shots": SHOTS,
        "draws": DRAWS,
        "tokens": TOKENS,
        "models": {},
    }
    pixels = {part: (getattr(data, f"{part}_images").flatten(1).float(), labels[part]) for part in PARTS}
    result["pixels"] = {"few_shot": measured(pixels)}
    for described_by, model in models.items():
        features = {part: described(model, data, part) for part in PARTS}
        rows = []
        for layer in range(model.config.depth + 2):
            row = {}
            for index, token in enumerate(TOKENS):
                if layer or index:  # the class token of z_0 is the same for all images
                    parts = {part: (features[part][layer, index], labels[part]) for part in PARTS}
                    row[token] = {"few_shot": measured(parts)}
                    if layer == model.config.depth + 1:
                        accuracy, strength = linear_probe(*parts.values())
                        row[token]["linear_probe"] = {"test": accuracy, "C": strength}
            rows.append(row)
            reached = {token: found["few_shot"]["20"]["test"] for token, found in row.items()}
            print(described_by, layer, reached, flush=True)
        result["models"][described_by] = rows
    write_result(name, result)


if __name__ == "__main__":
    main()
