"""Measure what a study's models are worth, frozen, on photos of other things (Figure 4, Table 8).

    python tools/measure_frozen.py --data-dir DEST --runs FOLDER
    python tools/measure_frozen.py --data-dir DEST --runs FOLDER --study positions

The paper's Figure 4 freezes models that were pre-trained on more and more photos, and fits a linear
classifier to five labels of each ImageNet class: ResNets are better after little pre-training and plateau
sooner than ViTs. Here the models of the study data_hunger, trained on 1,000 to 45,000 photos of CIFAR-10, are
frozen, each with three seeds at its best rate. Least squares on five labels of each of the 200 classes of
Tiny-ImageNet at 32 pixels, the mean of ten draws, is measured on 5,000 held-out training photos; the test
photos are not touched.

The rule, written before anything was measured: a model beats another after a number of photos if the 95 %
interval (Student's t, paired by seed) of their difference lies above 0; a lead closes if the interval of the
lead at the smallest number less that at the largest lies above 0. Writes results/hunger_frozen.json.

The paper's Table 8 compares forms of positions by five labels of each class, too. So the models of the study
positions, after 10,000 photos of CIFAR-10, are measured in the same way. The rule, written before anything
was measured: positions matter if the interval of "1-D, at the stem" over "none" lies above 0; their form does
not if that of each other cell over "1-D, at the stem" lies within a point of 0. On the 200 classes all eight
forms then had 5.0 to 5.6 %, where hardly any difference could be a point. So before they were measured on
Imagenette's ten classes, with forty draws, these were chosen to be judged by the same rule; the 200 classes
are kept beside them. Writes results/positions_frozen.json.
"""

from itertools import combinations
from pathlib import Path
from typing import Any

import torch
from measuring import options, write_result

from vit_from_scratch.data import DataConfig, open_dataset
from vit_from_scratch.model.checkpoints import load_checkpoint
from vit_from_scratch.training.features import extract_features
from vit_from_scratch.training.few_shot import few_shot_accuracy
from vit_lab.experiments.comparing import paired_interval
from vit_lab.experiments.packaged import load_result
from vit_lab.experiments.records import rate_folder, read_rows
from vit_lab.experiments.study import load_study
from vit_lab.runs.run_folder import MODEL

WRITTEN = {"data_hunger": "hunger_frozen", "positions": "positions_frozen"}
"""The result of each study."""
SHOTS, DRAWN_FROM, HELD_OUT = 5, 4_000, 5_000
TINY_IMAGENET, IMAGENETTE = (
    DataConfig(name, train_size=DRAWN_FROM, validation_size=HELD_OUT, image_size=32)
    for name in ("tiny-imagenet", "imagenette")
)
SHOWN: dict[str, dict[str, tuple[DataConfig, int]]] = {
    "data_hunger": {"Tiny-ImageNet": (TINY_IMAGENET, 10)},
    "positions": {"Tiny-ImageNet": (TINY_IMAGENET, 10), "Imagenette": (IMAGENETTE, 40)},
}
"""The photos on which a study's models are measured, and how often five labels of each class are drawn."""

Lead = tuple[float, float, float]
Reached = dict[str, dict[str, list[float]]]
"""Accuracies, one a seed, by number of photos and model."""


def compared(reached: Reached) -> dict[str, dict[str, Lead]]:
    """Return the lead of one model over another after each number of photos, and by how much it closes."""
    first, *_, last = reached
    found = {}
    for theirs, ours in combinations(reached[first], 2):
        leads = {
            photos: [our - their for our, their in zip(by_model[ours], by_model[theirs], strict=True)]
            for photos, by_model in reached.items()
        }
        intervals = {photos: paired_interval(lead, [0.0] * len(lead)) for photos, lead in leads.items()}
        found[f"{ours} over {theirs}"] = intervals | {"closes": paired_interval(leads[first], leads[last])}
    return found


def against_one(reached: dict[str, list[float]], one: str, none: str) -> dict[str, Lead]:
    """Return the lead of one row over another, and of every further row over that one."""
    leads = {f"{one} over {none}": paired_interval(reached[one], reached[none])}
    others = (name for name in reached if name not in (one, none))
    return leads | {f"{name} over {one}": paired_interval(reached[name], reached[one]) for name in others}


def main() -> None:
    """Measure and write."""
    parser = options(__doc__)
    parser.add_argument("--study", choices=list(WRITTEN), default="data_hunger")
    parser.add_argument("--runs", type=Path, required=True, help="the folder over the study's runs")
    given = parser.parse_args()
    torch.set_num_threads(1)
    shown = SHOWN[given.study]
    data = {name: open_dataset(config, given.data_dir) for name, (config, _) in shown.items()}
    photos = {
        name: [list(found.batches(part)) for part in ("train", "validation")] for name, found in data.items()
    }
    chosen = {(row.task, row.name): row.chosen for row in read_rows(load_result(given.study))}
    reached: Reached = {}
    for variant in load_study(given.study).variants():
        best = given.runs / variant.recipe.name / rate_folder(chosen[variant.task, variant.name])
        models = [load_checkpoint(best / f"seed-{seed}" / MODEL) for seed in variant.recipe.seeds]
        for name, (_, draws) in shown.items():
            parts = [[extract_features(model, part) for part in photos[name]] for model in models]
            found = [few_shot_accuracy(*both, SHOTS, draws).mean for both in parts]
            reached.setdefault(variant.task or name, {})[variant.name] = found
            print(variant.task or name, variant.name, found, flush=True)
    sets = " and ".join(shown)
    facts: dict[str, Any] = {
        "images": HELD_OUT,
        "drawn_from": DRAWN_FROM,
        "shots": SHOTS,
        "draws": {name: draws for name, (_, draws) in shown.items()},
        "photos": f"held-out photos of {sets}, {SHOTS} labels a class, {len(models)} seeds a side",
    }
    if given.study == "positions":
        differences: Any = {
            name: against_one(rows, "1-D, at the stem", "none") for name, rows in reached.items()
        }
    else:
        differences = compared(reached)
    write_result(WRITTEN[given.study], {**facts, "measured": reached, "differences": differences})


if __name__ == "__main__":
    main()
