"""A plain ViT with a teacher, in the half hour that it has without one (chapter 9).

    python benchmarks/half_hour_taught.py --data-dir DEST --results vit_lab/results/half_hour_taught.json

The teacher is the CNN of `half_hour_cnn.py`, at that file's best rate, and its training is part of the half
hour. What is left of it trains the ViT of the recipe `cifar10-half-hour-remedies`, in fewer epochs. Its
target for a photo is the mean of the label and of what the teacher says of this very view of the photo
(Touvron et al., 2021, with soft answers); these take the place of label smoothing. Test photos are measured
once a seed. What was done is kept after each run in --out; the same command goes on.
"""

import dataclasses
from typing import Any

import half_hour_cnn
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from vit_from_scratch.data import Augmentation, open_dataset
from vit_from_scratch.data.dataset import Batches, ImageData
from vit_from_scratch.files import write_json
from vit_from_scratch.model.cost import count_parameters, counted_flops, forward_flops
from vit_from_scratch.precisions import has_bfloat16_units
from vit_from_scratch.training import EpochMetrics, TrainConfig, train
from vit_lab import load_result, read_rows
from vit_lab.experiments.recipes import Recipe, load_recipe
from vit_lab.experiments.records import Row, SeedRun
from vit_lab.runs.environment import environment
from vit_lab.runs.progress_bar import ProgressBar

RECIPE = "cifar10-half-hour-remedies"
NAME, TEACHER = "plain ViT, taught", "its teacher, a small CNN"
COMMAND = (
    "python benchmarks/half_hour_taught.py --data-dir DEST --results vit_lab/results/half_hour_taught.json"
)
CLAIM = (
    "Taught by a CNN that learns in the same half hour, a plain ViT classifies 89 % of the CIFAR-10 test "
    "photos correctly."
)
TEACHER_EPOCHS, EPOCHS = 9, 15  # as many as fill the half hour


def recipe_of(epochs: int, seed: int) -> Recipe:
    """Return the recipe with as many epochs, without smoothing."""
    recipe = load_recipe(RECIPE)
    settings = dataclasses.replace(recipe.train, epochs=epochs, seed=seed, label_smoothing=0.0)
    return dataclasses.replace(recipe, train=settings, seeds=(seed,))


def taught_targets(teacher: nn.Module, images: Tensor, labels: Tensor) -> Tensor:
    """Return the means (B, K) of the labels (B,) and the teacher's probabilities for images (B, C, H, W)."""
    said = teacher(images).float().softmax(dim=1)
    return (F.one_hot(labels, said.shape[1]) + said) / 2


@dataclasses.dataclass(frozen=True, eq=False, repr=False)
class TaughtData(ImageData):
    """Photos whose training batches come with shares of the classes (B, K): half label, half teacher."""

    teacher: nn.Module = dataclasses.field(kw_only=True)

    def training_batches(
        self, batch_size: int, augmentation: Augmentation, seed: int, workers: int = 0
    ) -> Batches:
        """Yield the training photos of an epoch, each with what the teacher says of this very view."""
        for images, labels in super().training_batches(batch_size, augmentation, seed, workers):
            with torch.no_grad(), torch.autocast("cpu", torch.bfloat16, enabled=has_bfloat16_units("cpu")):
                targets = taught_targets(self.teacher, self.normalise(images), labels)
            yield images, targets


def taught(teacher: nn.Module, data: ImageData, recipe: Recipe) -> tuple[nn.Module, list[EpochMetrics]]:
    """Train the recipe's ViT with a teacher."""
    model, bar = recipe.seeded(data), ProgressBar(f"taught, seed {recipe.train.seed}")
    return model, train(model, TaughtData(**vars(data), teacher=teacher), recipe.train, [bar])


def summary(
    found: list[dict[str, Any]], recipe: Recipe, teacher: TrainConfig, data: ImageData
) -> dict[str, Any]:
    """Return what ships: a row for the ViT, whose time holds the teacher's, and one for the teacher."""
    vit, cnn = recipe.build(data), half_hour_cnn.SmallCNN()
    flops = {NAME: forward_flops(vit.config), TEACHER: counted_flops(cnn, data.image_shape)}
    configs = {NAME: recipe, TEACHER: dataclasses.replace(recipe, model={}, whiten=False, train=teacher)}
    rows = [
        Row(
            name=name,
            runs=[SeedRun.of({**run, **run[name]}, run[name]["curves"]) for run in found],
            facts={
                "test_images": found[0][name]["test_images"],
                "parameters": count_parameters(model),
                "forward_flops": flops[name],
            },
            config=configs[name].tables(),
        )
        for name, model in ((NAME, vit), (TEACHER, cnn))
    ]
    facts = {
        "name": "half_hour_taught",
        "claim": CLAIM,
        "command": COMMAND,
        "base": RECIPE,
        "cumulative": False,
    }
    return facts | {"rows": [row.table() for row in rows]} | rows[0].made


def main() -> None:
    """Run from the command line."""
    parser = half_hour_cnn.options_of(__doc__, "runs/half-hour-taught.json", EPOCHS, (0, 1, 2))
    parser.add_argument("--teacher-epochs", type=int, default=TEACHER_EPOCHS)
    options = parser.parse_args()
    data = open_dataset(load_recipe(RECIPE).data, options.data_dir)
    rate = read_rows(load_result("half_hour_cnn"))[0].chosen
    asked = {"epochs": options.epochs, "teacher_epochs": options.teacher_epochs}
    found = {"runs": []} | half_hour_cnn.kept_in(options.out, asked)
    for seed in options.seeds:
        if seed in [run["seed"] for run in found["runs"]]:
            continue
        here = environment(2, "cpu")  # of the code that trains, should it change meanwhile
        settings = half_hour_cnn.settings(rate, options.teacher_epochs, seed)
        teacher, lessons = half_hour_cnn.trained(data, settings)
        model, history = taught(teacher.eval(), data, recipe_of(options.epochs, seed))
        runs = {NAME: (model, history), TEACHER: (teacher, lessons)}
        rows = {name: half_hour_cnn.measured(one, data, epochs) for name, (one, epochs) in runs.items()}
        rows[NAME]["seconds"] += rows[TEACHER]["seconds"]
        found["runs"].append({"seed": seed, **rows, **here})
        write_json(options.out, found)
    if options.results:
        first = options.seeds[0]
        teacher_config = half_hour_cnn.settings(rate, options.teacher_epochs, first)
        runs = [run for run in found["runs"] if run["seed"] in options.seeds]
        whole = summary(runs, recipe_of(options.epochs, first), teacher_config, data)
        write_json(options.results, whole)


if __name__ == "__main__":
    main()
