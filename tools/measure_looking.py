"""Look into the shipped Tiny-ImageNet model on thousands of test photos, and write down what Part III quotes.

Its runs, one after the other, each kept some epochs, and each begins with the weights of the one before. What
ships is the mean of the weights with which the last two end:

    python tools/measure_looking.py A B C --data-dir DEST

Writes vit_lab/results/inspection_tiny_imagenet.json. With --after, the file that was written about
earlier runs, their moments of training come before those of the runs that are named; with no run named, the
shipped model is measured anew and they stay.

    python tools/measure_looking.py --stem RUN --data-dir DEST

measures how far the heads of a run of the same recipe with a convolutional or ResNet stem look, at the
moments that it kept and on the photos on which those of the plain runs were measured. It writes
results/inspection_stem.json.

Differences between two maps are paired: photo by photo, then their mean with an interval of 95 %.
"""

import copy
import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as F
from measuring import interval, options, write_result
from torch import Tensor

from vit_from_scratch import VisionTransformer
from vit_from_scratch.data import DataConfig, open_dataset
from vit_from_scratch.data.dataset import DataSet
from vit_from_scratch.errors import InputError
from vit_from_scratch.inspection import (
    attention_distances,
    class_token_maps,
    layer_attention,
    layer_tokens,
    object_share,
    position_similarity,
)
from vit_from_scratch.inspection.attention_distance import patch_distances
from vit_from_scratch.inspection.masking import (
    contrast_scores,
    gradient_scores,
    mask_patches,
    rollout_scores,
)
from vit_from_scratch.model.checkpoints import load_checkpoint
from vit_from_scratch.model.modes import evaluating
from vit_lab.experiments.recipes import load_recipe
from vit_lab.runs.finished import read_result
from vit_lab.runs.trained_models import open_model

HIDDEN = (4, 8, 16, 24, 32, 48)
"""How many of the 64 patches are hidden."""
OBJECT = (0.05, 0.5)
"""The least and the largest share of a photo that its box may cover where attention on it is measured."""
BATCH = 250


def over_batches(function: Callable[[Tensor], Tensor], images: Tensor, dim: int = 0) -> Tensor:
    """Apply a function to the images a batch at a time, and join what it returns along a dimension."""
    with torch.no_grad():
        return torch.cat([function(some) for some in images.split(BATCH)], dim=dim)


def distances(model: VisionTransformer, images: Tensor) -> dict[str, Any]:
    """Measure every head's mean attention distance, its standard error, and to how many patches it attends.

    The number of patches is exp(entropy) of a patch's attention to the patches, mean over patches and images.
    """

    def attended(weights: Tensor) -> Tensor:
        among = weights[..., -model.config.num_patches :, -model.config.num_patches :]
        return torch.special.entr(F.normalize(among, p=1, dim=-1)).sum(dim=-1).exp().mean(dim=-1)  # (B, h)

    values = over_batches(lambda some: attention_distances(model, some), images, dim=1)  # (L, N, h)
    counts = over_batches(lambda some: torch.stack(layer_attention(model, some, attended)), images, dim=1)
    return {
        "pixels": values.mean(dim=1).tolist(),
        "standard_error": (values.std(dim=1) / values.shape[1] ** 0.5).tolist(),
        "attended": counts.mean(dim=1).tolist(),
    }


def tokens_on_the_way(model: VisionTransformer, images: Tensor) -> dict[str, list[float]]:
    """Measure the patch tokens before the first layer and after each: norms, and how alike an image's are."""

    def measures(some: Tensor) -> Tensor:
        found = []
        for tokens in layer_tokens(model, some):
            flat = tokens.flatten(1, 2)  # (B, N, D)
            unit = F.normalize(flat, dim=-1)
            count = flat.shape[1]
            alike = (unit.sum(dim=1).square().sum(dim=-1) - count) / (count * (count - 1))
            norms = flat.norm(dim=-1)
            found.append(torch.stack([norms.median(dim=1).values, norms.amax(dim=1), alike]))
        return torch.stack(found)  # (L + 1, 3, B)

    median, largest, alike = over_batches(measures, images, dim=2).unbind(dim=1)
    return {
        "median_norm": median.median(dim=1).values.tolist(),
        "largest_norm": largest.amax(dim=1).tolist(),
        "mean_cosine": alike.mean(dim=1).tolist(),
    }


def centre_scores(images: Tensor, grid: tuple[int, int]) -> Tensor:
    """Score each patch by how near it is to the middle, the same for every image, (B, gh, gw)."""
    axes = (torch.linspace(-1, 1, n) if n > 1 else torch.zeros(1) for n in grid)
    rows, columns = torch.meshgrid(*axes, indexing="ij")
    return -(rows**2 + columns**2).to(images.device).expand(len(images), *grid)


def leads(one: Tensor, others: dict[str, Tensor], where: Tensor | slice = slice(None)) -> dict[str, Any]:
    """Compare one value of each photo with others, photo by photo; not with itself."""
    return {name: interval((one - other)[where]) for name, other in others.items() if other is not one}


def on_object(
    model: VisionTransformer, untrained: VisionTransformer, images: Tensor, masks: Tensor
) -> dict[str, Any]:
    """Measure the share of attention on the object, where masks (N, H, W) are 1, against chance, by head."""
    grid, size = model.config.grid, model.config.patch_size
    rollout = over_batches(lambda some: rollout_scores(model, some), images)  # (N, gh, gw)
    maps = {
        "rollout": rollout,
        "the same everywhere": torch.ones_like(rollout),
        "before training": over_batches(lambda some: rollout_scores(untrained, some), images),
        "another photo's map": rollout.roll(1, dims=0),
        "the middle": centre_scores(images, grid) + 2.0,  # 2 in the middle, 0 in the corners
        "contrast": contrast_scores(images, size),
    }
    shares = {name: object_share(found, masks).double() for name, found in maps.items()}

    def by_head(some: Tensor) -> Tensor:
        return class_token_maps(layer_attention(model, some), grid).transpose(0, 1)  # (B, L, h, gh, gw)

    heads = over_batches(by_head, images)
    every = torch.stack(
        [object_share(head, masks).double() for head in heads.flatten(1, 2).unbind(dim=1)]
    )  # (L h, N)
    choosing = torch.arange(len(images)) % 2 == 0
    best = int(every[:, choosing].mean(dim=1).argmax())
    others = {name: shares[name] for name in ("contrast", "the middle")}
    others["another photo's map"] = object_share(heads.flatten(1, 2)[:, best].roll(1, dims=0), masks).double()
    return {
        "images": len(images),
        "box_area": list(OBJECT),
        "share": {name: interval(found) for name, found in shares.items()},
        "rollout_less": leads(shares["rollout"], shares),
        "head_share": every.mean(dim=1).view(heads.shape[1:3]).tolist(),
        "head_less": {
            name: [interval(head - others[name]) for head in every] for name in ("contrast", "the middle")
        },
        "best_head": {
            "index": best,
            "less_where_chosen": leads(every[best], others, choosing),
            "less_elsewhere": leads(every[best], others, ~choosing),
        },
    }


@torch.no_grad()
def masked_hits(
    model: VisionTransformer,
    images: Tensor,
    labels: Tensor,
    score: Callable[[Tensor], Tensor],
    counts: Sequence[int],
) -> Tensor:
    """Find which images are still classified correctly while more and more patches are hidden, (counts, N).

    The highest scores (B, gh, gw), of images (B, C, H, W), are hidden first; one row for each of the counts.
    """
    found = []
    with evaluating(model):
        for some, target in zip(images.split(BATCH), labels.split(BATCH), strict=True):
            scores = score(some)
            hidden = (mask_patches(some, scores, count, model.config.patch_size) for count in counts)
            answers = torch.stack([model(masked).argmax(dim=1) for masked in hidden])  # (len(counts), B)
            found.append((answers == target.to(answers.device)).cpu())
    return torch.cat(found, dim=1)


def masking(
    model: VisionTransformer, images: Tensor, labels: Tensor, best: tuple[int, int]
) -> dict[str, Any]:
    """Measure accuracy by the number of hidden patches, for ways of choosing them; the `best` head is one."""
    generator = torch.Generator().manual_seed(0)
    grid, size = model.config.grid, model.config.patch_size

    def contrast(some: Tensor) -> Tensor:
        return contrast_scores(some, size)

    def best_head(some: Tensor) -> Tensor:
        return class_token_maps(layer_attention(model, some), grid)[best[0], :, best[1]]

    ways: dict[str, Callable[[Tensor], Tensor]] = {
        "most attended": lambda some: rollout_scores(model, some),
        "best head": best_head,
        "best head, another photo's": lambda some: best_head(some).roll(1, dims=0),
        "least attended": lambda some: -rollout_scores(model, some),
        "another photo's map": lambda some: rollout_scores(model, some).roll(1, dims=0),
        "the middle": lambda some: centre_scores(some, grid),
        "contrast": contrast,
        "gradient": lambda some: gradient_scores(model, some),
        "random": lambda some: torch.rand(len(some), *grid, generator=generator),
    }
    whole = masked_hits(model, images, labels, contrast, [0])
    hits = {
        name: torch.cat([whole, masked_hits(model, images, labels, way, HIDDEN)]).double()
        for name, way in ways.items()
    }
    return {
        "hidden": [0, *HIDDEN],
        "patches": model.config.num_patches,
        "accuracy": {name: [interval(row) for row in found] for name, found in hits.items()},
        **{
            f"less_{reference.replace(' ', '_')}": {
                name: [interval(row) for row in found - hits[reference]]
                for name, found in hits.items()
                if name != reference
            }
            for reference in ("most attended", "best head")
        },
    }


def fold(model: VisionTransformer, images: Tensor, labels: Tensor) -> dict[str, Any]:
    """Measure what becomes of the answers when patches get other patches' positions, or none."""
    rows, columns = model.config.grid
    places = torch.arange(rows * columns).view(rows, columns)
    generator = torch.Generator().manual_seed(0)
    orders = {
        "learned": places,
        "mirrored left-right": places.flip(1),
        "mirrored top-bottom": places.flip(0),
        "random": torch.randperm(rows * columns, generator=generator),
    }
    learned = model.tokens.position.detach()[:, 1:]  # (1, N, D)
    tables = {name: learned[:, order.flatten()] for name, order in orders.items()}
    tables["none"] = torch.zeros_like(learned)
    logits = {}
    for name, table in tables.items():
        changed = copy.deepcopy(model)
        with torch.no_grad():
            changed.tokens.position[:, 1:] = table
        logits[name] = over_batches(changed, images)
    hits = {name: (found.argmax(dim=1) == labels).double() for name, found in logits.items()}
    return {
        name: {
            "accuracy": interval(hits[name]),
            "less_learned": interval(hits[name] - hits["learned"]),
            "logit_change": (found - logits["learned"]).abs().mean().item(),
        }
        for name, found in logits.items()
    }


def weights_alone(model: VisionTransformer) -> dict[str, Any]:
    """Measure what the weights show without any photo: its table of positions."""
    similarity = position_similarity(model.tokens.position, model.config.grid).flatten(2).flatten(0, 1)
    apart = patch_distances(model.config.grid, 1)
    pairs = apart > 0
    together = torch.stack([similarity[pairs].double(), apart[pairs]])
    table = model.tokens.position.detach()[0, 1:].unflatten(0, model.config.grid)  # (gh, gw, D)
    return {
        "mirror_similarity": {
            name: F.cosine_similarity(table, table.flip(axis), dim=-1).mean().item()
            for name, axis in (("left-right", 1), ("top-bottom", 0))
        },
        "position_correlation": torch.corrcoef(together)[0, 1].item(),
    }


def moments_of(runs: list[Path], passed: int) -> dict[int, Path]:
    """Return the checkpoints that runs kept, the last of each among them, by epochs since the beginning.

    So many epochs have `passed` before the first run. If there were any, a run's model before training is not
    among the moments: it is what the run before ended with.
    """
    moments: dict[int, Path] = {}
    for run in runs:
        files = sorted((run / "epochs").glob("epoch-*.safetensors"))
        kept = {int(path.stem.split("-")[1]): path for path in files}
        kept[read_result(run)["epochs"]] = run / "model.safetensors"
        if not passed and 0 not in kept:
            raise InputError(
                f"{run} kept no model before training: expected vit train --keep-epochs 0 1 2 4."
            )
        moments |= {passed + epoch: path for epoch, path in kept.items() if epoch or not passed}
        passed = max(moments)
    return moments


def open_photos(data_dir: Path) -> tuple[DataSet, Tensor, Tensor]:
    """Return the data set, and the images and labels of its test part."""
    data = open_dataset(DataConfig("tiny-imagenet"), data_dir)
    images, labels = (torch.cat(part) for part in zip(*data.batches("test"), strict=True))
    return data, images, labels


def object_masks(data_dir: Path) -> Tensor:
    """Return where the object is in each test photo, (10,000, 64, 64): 1 in its box, both ends included."""
    path = data_dir / "tiny-imagenet-200" / "val" / "val_annotations.txt"
    lines = path.read_text().splitlines()
    masks = torch.zeros(len(lines), 64, 64)
    for mask, line in zip(masks, lines, strict=True):
        left, top, right, bottom = map(int, line.split()[2:])
        mask[top : bottom + 1, left : right + 1] = 1
    return masks


def measure_stem(run: Path, data_dir: Path, count: int) -> dict[str, Any]:
    """Return how far the heads of a run with a stem look, at every moment that it kept."""
    moments = {epoch: load_checkpoint(file) for epoch, file in moments_of([run], 0).items()}
    images = open_photos(data_dir)[1][: count // 4]
    return {
        "claim": "With a convolutional stem local heads are less pronounced. After the same 16 epochs fewer "
        "heads of the lower four layers look nearer than nine tenths of the uniform distance than without a "
        "stem, and the nearest of them looks farther.",
        "images": len(images),
        "on_the_way": {str(epoch): distances(model, images) for epoch, model in moments.items()},
    }


def measure(runs: list[Path], after: Path | None, data_dir: Path, count: int) -> dict[str, Any]:
    """Return everything that the result file of the plain runs holds."""
    first = json.loads(after.read_text("utf-8"))["on_the_way"] if after else {}
    moments = moments_of(runs, max((int(moment) for moment in first if moment != "mean"), default=0))
    data, images, labels = open_photos(data_dir)
    masks = object_masks(data_dir)
    area = masks.mean(dim=(1, 2))
    path = {str(epoch): load_checkpoint(file) for epoch, file in moments.items()}
    shipped = open_model("tiny-imagenet")
    model = path["mean"] = shipped.model
    untrained = load_recipe("tiny-imagenet-plain").seeded(data) if after else path["0"]
    assert isinstance(untrained, VisionTransformer)
    looked_at, asked = images[:count], labels[:count]
    boxed = ((area >= OBJECT[0]) & (area <= OBJECT[1])).nonzero()[:, 0][:count]
    objects = on_object(model, untrained, images[boxed], masks[boxed])
    found = {
        epoch: {"distance": distances(one, images[: count // 4])["pixels"], **weights_alone(one)}
        for epoch, one in path.items()
    }
    best = divmod(objects["best_head"]["index"], model.config.heads)
    return {
        "claim": "What the model of 200 kinds of photos looks at, on test photos that it never saw.",
        "images": len(looked_at),
        "model_sha256": shipped.sha256,
        "distance": {"trained": distances(model, looked_at), "untrained": distances(untrained, looked_at)},
        "tokens": tokens_on_the_way(model, looked_at),
        "on_object": objects,
        "masking": masking(model, looked_at, asked, best),
        "fold": fold(model, looked_at, asked),
        "on_the_way": first | found,
    }


def main() -> None:
    """Run from the command line."""
    parser = options(__doc__)
    parser.add_argument("runs", nargs="*", type=Path, help="finished runs that kept some epochs, in order")
    parser.add_argument("--after", type=Path, help="what this tool wrote about earlier runs, or about all")
    parser.add_argument("--stem", type=Path, help="a finished run of the same with a stem, measured alone")
    parser.add_argument("--images", type=int, default=2000, help="test photos to look at")
    given = parser.parse_args()
    if bool(given.stem) == bool(given.runs or given.after):
        parser.error("expected a finished run, or --after RESULT for the shipped model alone, or --stem RUN")
    try:
        if given.stem:
            name, result = "inspection_stem", measure_stem(given.stem, given.data_dir, given.images)
        else:
            name = "inspection_tiny_imagenet"
            result = measure(given.runs, given.after, given.data_dir, given.images)
    except InputError as error:
        parser.error(str(error))
    write_result(name, result)


if __name__ == "__main__":
    main()
