"""Measure what the shipped models without labels answer on held-out photos, and write a result that ships.

    python tools/measure_masked.py --data-dir DEST

The photos are the 5,000 of Tiny-ImageNet's training photos that the runs held out; what is hidden in them is
what the runs' own measurements hide. Beside the model that names colours stand two guesses: the colour that
is most frequent among the held-out patches, and the mean of the visible neighbours. An interval is that of
2,000 draws of the photos with replacement.
"""

import math
from typing import Any

import torch
import torch.nn.functional as F
from einops import rearrange
from measuring import options, write_result
from torch import Tensor

from vit_from_scratch.data import open_dataset
from vit_from_scratch.data.dataset import DataSet
from vit_from_scratch.pretrained import load_self_supervised
from vit_from_scratch.training import MaskedAutoencoder, MaskedPatchPrediction
from vit_from_scratch.training.masked_autoencoding import standardised_patches
from vit_from_scratch.training.masked_patches import COLOURS, colour_numbers, colours_of_numbers, mean_colours
from vit_from_scratch.training.self_supervised import MEASURING_SEED
from vit_lab import load_recipe
from vit_lab.runs.trained_models import open_model

NAME = "tiny-imagenet-masked"
DRAWS = 2_000
FATES = ("masked", "replaced", "kept")


def neighbour_colours(means: Tensor, visible: Tensor, grid: tuple[int, int]) -> Tensor:
    """Guess each patch's mean colour by the visible ones around it: what a model has to beat.

    Args:
        means: (B, N, 3), the mean colours.
        visible: (B, N), true where a patch may be looked at; a patch is never its own neighbour.
        grid: rows and columns (gh, gw) of the patches, N = gh gw.

    Returns:
        (B, N, 3), the mean over the visible patches among the eight around it; over all visible patches of
        the image where there is none, and mid-grey where the image has none.
    """
    weight = visible.to(means.dtype)[..., None]  # (B, N, 1)
    both = torch.cat([means * weight, weight], dim=-1)  # (B, N, 4)
    squares = F.pad(rearrange(both, "b (i j) c -> b c i j", i=grid[0]), (1, 1, 1, 1))
    around = rearrange(9 * F.avg_pool2d(squares, 3, stride=1), "b c i j -> b (i j) c") - both
    everywhere = both.sum(dim=1, keepdim=True)  # (B, 1, 4)
    everywhere = torch.where(everywhere[..., 3:] > 0, everywhere, everywhere.new_tensor([128, 128, 128, 1]))
    chosen = torch.where(around[..., 3:] > 0.5, around, everywhere)
    return chosen[..., :3] / chosen[..., 3:]


@torch.no_grad()
def answers(task: MaskedPatchPrediction, data: DataSet) -> dict[str, Tensor]:
    """Ask for the held-out photos' corrupted patches, and return all that is known of them, one a row.

    Returns:
        For each asked patch: its photo, its fate, its target, the model's answer and loss, the neighbours'
        answer, how many neighbours are visible, and how far off each answer is, in levels of 0 to 255.
    """
    generator = torch.Generator().manual_seed(MEASURING_SEED)
    columns: dict[str, list[Tensor]] = {}
    photos = 0
    for images, _ in data.batches("validation"):
        corruption, grid = task.draw(images, generator), task.grid(images)
        logits = task.logits(images, corruption).float()
        means = mean_colours(task.levels(images), task.patch_size)  # (B, N, 3)
        targets, chosen = colour_numbers(means), corruption.chosen
        around = neighbour_colours(means, ~chosen, grid)
        own = torch.arange(targets.numel()).view(targets.shape)
        fate = torch.where(corruption.masked, 0, torch.where(corruption.source == own, 2, 1))
        visible = F.avg_pool2d((~chosen).float().view(-1, 1, *grid), 3, 1, 1, divisor_override=1)
        answer = logits.argmax(dim=-1)
        found = {
            "photo": photos + torch.arange(len(images))[:, None].expand(targets.shape),
            "fate": fate,
            "target": targets,
            "model": answer,
            "neighbours": colour_numbers(around),
            "loss": F.cross_entropy(logits.mT, targets, reduction="none"),
            "visible": visible.flatten(1).round().long(),
            "model_off": (colours_of_numbers(answer) - means).abs().mean(dim=-1),
            "neighbours_off": (around - means).abs().mean(dim=-1),
        }
        photos += len(images)
        for name, values in found.items():
            columns.setdefault(name, []).append(values[chosen])
    return {name: torch.cat(parts) for name, parts in columns.items()}


def interval(right: Tensor, photo: Tensor) -> list[float]:
    """Return the mean of a value for each patch, and the ends of its 95 % interval over draws of photos."""
    count = int(photo.max()) + 1
    by_photo = torch.zeros(count, dtype=torch.float64).index_add_(0, photo, right.double())
    by_photo /= photo.bincount(minlength=count)
    generator = torch.Generator().manual_seed(0)
    draws = (torch.randint(count, (count,), generator=generator) for _ in range(DRAWS))
    means = torch.stack([by_photo[drawn].mean() for drawn in draws])
    return [by_photo.mean().item(), *means.quantile(torch.tensor([0.025, 0.975]).double()).tolist()]


def of_colours(found: dict[str, Tensor]) -> dict[str, Any]:
    """Put what is known of the asked patches into numbers."""
    target, model, around = found["target"], found["model"], found["neighbours"]
    shares = target.bincount(minlength=COLOURS).double() / len(target)
    most = shares.argmax()
    right = {"model": model == target, "neighbours": around == target, "most frequent": target == most}
    photo = found["photo"]

    def where(here: Tensor, **values: Tensor) -> dict[str, float]:
        means = {name: value[here].double().mean().item() for name, value in values.items()}
        return {"patches": int(here.sum()), **means}

    return {
        "patches": len(target),
        "accuracy": {name: interval(values, photo) for name, values in right.items()},
        "model_less_neighbours": interval(right["model"].double() - right["neighbours"].double(), photo),
        "by_fate": {
            fate: where(found["fate"] == number, accuracy=right["model"]) for number, fate in enumerate(FATES)
        },
        "by_visible_neighbours": [where(found["visible"] == count, **right) for count in range(9)],
        "loss": found["loss"].double().mean().item(),
        "loss_of_chance": math.log(COLOURS),
        "loss_of_frequencies": torch.special.entr(shares).sum().item(),
        "levels_off": {name: found[f"{name}_off"].double().mean().item() for name in ("model", "neighbours")},
        "colours": {"there": len(target.unique()), "answered": len(model.unique())},
    }


@torch.no_grad()
def of_pixels(task: MaskedAutoencoder, data: DataSet) -> dict[str, float]:
    """Part what the hidden patches hold, and the model's error, into a flat colour and the pattern on it.

    A patch has mean 0 and variance 1 over all its values. The variance of its three channel means is that of
    its flat colour (its hue, once brightness and contrast are gone), the rest is the pattern.
    """
    generator = torch.Generator().manual_seed(MEASURING_SEED)
    sums = dict.fromkeys(("colour", "pattern", "colour_error", "pattern_error"), 0.0)
    hidden = 0
    for images, _ in data.batches("validation"):
        chosen = task.draw(images, generator)
        painted = task.decode(task.see(images, chosen), chosen, task.grid(images)).float()
        wanted, _, _ = standardised_patches(images, task.patch_size)
        for name, values in (("", wanted[chosen]), ("_error", (painted - wanted)[chosen])):
            pixels = rearrange(values, "n (p c) -> n p c", c=3)
            flat = pixels.mean(dim=1)  # (n, 3)
            sums[f"colour{name}"] += flat.square().mean(dim=1).sum().item()
            sums[f"pattern{name}"] += (pixels - flat[:, None]).square().mean(dim=(1, 2)).sum().item()
        hidden += int(chosen.sum())
    found = {name: total / hidden for name, total in sums.items()}
    return {"patches": hidden, "loss": found["colour_error"] + found["pattern_error"], **found}


def main() -> None:
    """Measure and write."""
    given = options(__doc__).parse_args()
    torch.set_num_threads(1)
    data = open_dataset(load_recipe(f"{NAME}-patches").data, given.data_dir)
    task, painter = (load_self_supervised(f"{NAME}-{kind}") for kind in ("patches", "pixels"))
    assert isinstance(task, MaskedPatchPrediction)
    assert isinstance(painter, MaskedAutoencoder)
    result = {
        "model_sha256": {name: open_model(name).sha256 for name in (f"{NAME}-patches", f"{NAME}-pixels")},
        "images": data.size_of("validation"),
        "colours": of_colours(answers(task, data)),
        "pixels": of_pixels(painter, data),
    }
    write_result("masked_tiny_imagenet", result)


if __name__ == "__main__":
    main()
