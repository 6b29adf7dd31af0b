"""What a claim rests on: differences with intervals of 95 %, read from results or from weights that ship."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from html import escape
from math import sqrt
from statistics import fmean
from typing import Any

import numpy as np
import torch
from project_facts import read_repository
from scipy import stats
from sphinx.errors import ExtensionError

from vit_from_scratch.examples import PHOTOS, photo
from vit_from_scratch.inspection.attention_distance import patch_distances
from vit_from_scratch.inspection.embedding_filters import embedding_filter_components
from vit_from_scratch.inspection.position_similarity import position_similarity
from vit_from_scratch.model.patches import patchify
from vit_from_scratch.model.vit import VisionTransformer
from vit_from_scratch.pretrained import load_pretrained
from vit_lab.experiments.comparing import inner_best, paired_interval, seed_by_seed
from vit_lab.experiments.packaged import load_result, packaged_names
from vit_lab.experiments.records import Row, read_rows
from vit_lab.experiments.study import label_of

MODEL = "tiny-imagenet"
LOOKED = "inspection_tiny_imagenet"
MARGIN = 1.0
"""Points of accuracy within which two things count as alike: a wide interval holds zero easily."""


@dataclass(frozen=True)
class Difference:
    """What a claim says is above zero, or `alike`: its mean and the interval, in `unit` or as `said`.

    Of two rows `reached` are the accuracies, in per cent, means where there are several seeds.
    """

    label: str
    mean: float
    low: float
    high: float
    unit: str = "points"
    alike: bool = False
    said: str = ""
    reached: tuple[float, float] | None = None

    @property
    def seen(self) -> bool:
        """Whether the whole interval lies above zero; of what is said to be alike, within `MARGIN` of it."""
        return -MARGIN <= self.low <= self.high <= MARGIN if self.alike else self.low > 0

    @property
    def words(self) -> str:
        """The numbers as the page prints them.

        >>> Difference("", 34.87, 33.1, 36.66).words
        '+34.9 points (+33.1 to +36.7)'
        """
        if self.said:
            return self.said
        digits = ".2f" if self.unit in ("cosine", "correlation", "in the exponent") else ".1f"
        mean, low, high = (f"{value:+{digits}}" for value in (self.mean, self.low, self.high))
        return f"{mean} {self.unit} ({low} to {high})".replace("-", "\N{MINUS SIGN}")


def differences(evidence: dict[str, Any]) -> list[Difference]:
    """Return what a line of evidence in book/claims.toml comes to."""
    label = evidence.get("label", "")
    match evidence["kind"]:
        case "study":
            rows = read_rows(load_result(evidence["result"]))
            return [
                between_rows(
                    ", ".join(filter(None, (task, label))),
                    *(_named(rows, task, evidence[side]) for side in SIDES),
                )
                for task in dict.fromkeys(row.task for row in rows)
                if task != evidence.get("but")
            ]
        case "lead":
            rows = read_rows(load_result(evidence["result"]))
            sides = [(evidence[task], evidence[side]) for task in ("first", "last") for side in SIDES]
            reached = seed_by_seed(*(_named(rows, *side) for side in sides))
            leads = [np.subtract(*reached[:2]), np.subtract(*reached[2:])]
            return [Difference(label, *paired_interval(*(100 * lead for lead in leads)))]
        case "tasks":
            rows = read_rows(load_result(evidence["result"]))
            found = {row.task: row for row in rows}
            return [between_rows(label, *(found[evidence[side]] for side in SIDES))]
        case "runs":
            return [between_rows(label, *(_row_of(evidence[side]) for side in SIDES))]
        case "fit":
            return [fall_with_operations(label, read_rows(load_result(evidence["result"])))]
        case "stored":
            found = load_result(evidence["result"])
            for key in evidence["at"]:
                found = found[key]
            return [Difference(label, *(100 * value for value in found))]
        case "beside":
            sides = load_result(evidence["result"])["sides"].items()
            return [_beside(f"{label}, {side} px", rows, evidence) for side, rows in sides]
        case "filters":
            return [_filters(label, evidence["of"])]
        case "positions":
            return [_positions(label, evidence["of"])]
        case "heads":
            return [_heads(label, evidence["of"])]
        case kind:
            raise ExtensionError(
                f"claims.toml: evidence of kind {kind!r}: expected one that `differences` has."
            )


SIDES = ("better", "worse")


def _named(rows: Sequence[Row], task: str, name: str) -> Row:
    for row in rows:
        if row.task == task and row.name == name:
            return row
    there = sorted({row.name for row in rows if row.task == task})
    raise ExtensionError(f"claims.toml: row {name!r} of task {task!r}: expected one of {there}.")


def _row_of(side: str | dict[str, str]) -> Row:
    """The only row of a result of that name, or of a study's the one that a table names."""
    if isinstance(side, str):
        return read_rows(load_result(side))[0]
    return _named(read_rows(load_result(side["result"])), side.get("task", ""), side["row"])


def between_rows(label: str, better: Row, worse: Row) -> Difference:
    """Compare two rows by the seeds that both have: paired, or of one by counting the images measured."""
    rows = (better, worse)
    if min(len(row.runs) for row in rows) > 1:
        ours, others = ([100 * value for value in values] for values in seed_by_seed(*rows))
        return Difference(label, *paired_interval(ours, others), reached=(fmean(ours), fmean(others)))
    shared = set.intersection(*({run.seed for run in row.runs} for row in rows))
    if not shared:
        raise ExtensionError(f"claims.toml, {label!r}: its two sides have no seed in common: expected one.")
    seed = min(shared)
    places = [[run.seed for run in row.runs].index(seed) for row in rows]
    reached = [100 * row.values()[place] for row, place in zip(rows, places, strict=True)]
    gap = reached[0] - reached[1]
    images = [row.facts[row.measure.replace("accuracy", "images")] for row in rows]
    error = sqrt(sum(p * (100 - p) / n for p, n in zip(reached, images, strict=True)))
    return Difference(label, gap, gap - 1.96 * error, gap + 1.96 * error, reached=(reached[0], reached[1]))


def spread_of(label: str, some: Sequence[float], others: Sequence[float], unit: str) -> Difference:
    """Compare the means of two samples that are not paired (Welch)."""
    interval = stats.ttest_ind(some, others, equal_var=False).confidence_interval()
    return Difference(label, fmean(some) - fmean(others), float(interval.low), float(interval.high), unit)


def fall_with_operations(label: str, rows: Sequence[Row]) -> Difference:
    """Fit error ~ operations^-a to the rows' means, a line on logarithmic axes: a, by its points."""
    operations = np.log([row.facts["forward_flops"] for row in rows])
    error = np.log([1 - fmean(row.values()) for row in rows])
    line = stats.linregress(operations, error)
    fall, margin = -float(line.slope), stats.t.ppf(0.975, len(rows) - 2) * float(line.stderr)
    return Difference(label, fall, fall - margin, fall + margin, "in the exponent")


def one_sample(label: str, values: np.ndarray, unit: str) -> Difference:
    """Compare the mean of a sample with zero."""
    interval = stats.ttest_1samp(values, 0).confidence_interval()
    return Difference(label, float(values.mean()), float(interval.low), float(interval.high), unit)


LEADING = 28
"""Components of the embedding filters that the paper shows."""
LOWEST = 3
"""Layers that count as the lowest."""


def _components(trained: bool) -> np.ndarray:
    """The leading components of the filters of our model, or of one that has seen nothing, (k, C, P, P)."""
    model = load_pretrained(MODEL)
    if not trained:
        torch.manual_seed(0)
        model = VisionTransformer(model.config)
    weight = model.patch_embedding.as_convolution_weight().detach()
    return embedding_filter_components(weight, LEADING).components.numpy()


def _smoothness(components: np.ndarray) -> list[float]:
    """How alike neighbouring pixels are in each component: their correlation, across and down."""
    pairs = ((components[..., :-1], components[..., 1:]), (components[..., :-1, :], components[..., 1:, :]))
    both = [[np.corrcoef(a.ravel(), b.ravel())[0, 1] for a, b in zip(*pair, strict=True)] for pair in pairs]
    return np.mean(both, axis=0).tolist()


def _redrawn(components: np.ndarray) -> np.ndarray:
    """How much of each patch of three photos the components redraw, in %: of its squares, less the mean's."""
    found, side = [], components.shape[-1]
    for name in PHOTOS:
        tiles = patchify(photo(64, name), side)[0].unflatten(1, (side, side, -1))  # (N, P, P, C)
        rows = tiles.permute(0, 3, 1, 2).flatten(1).double().numpy()
        rows = rows - rows.mean(axis=0)
        kept = rows @ components.reshape(len(components), -1).T
        found.append(100 * (kept**2).sum(axis=1) / (rows**2).sum(axis=1))
    return np.concatenate(found)


def _filters(label: str, of: str) -> Difference:
    """Compare the components of trained filters with untrained ones, or what they redraw with a half."""
    ours, others = _components(trained=True), _components(trained=False)
    if of == "smooth":
        return spread_of(label, _smoothness(ours), _smoothness(others), "correlation")
    return one_sample(label, _redrawn(ours) - (50 if of == "half" else _redrawn(others)), "%")


def _positions(label: str, of: str) -> Difference:
    """For each patch: the mean cosine of its position with those named, less that with those elsewhere.

    Rows and columns are compared at equal distances, within the patch's half of the photo.
    """
    model = load_pretrained(MODEL)
    rows, columns = grid = model.config.grid
    alike = position_similarity(model.tokens.position, grid).reshape(rows * columns, -1).numpy()
    row, column = (index.ravel() for index in np.indices(grid))
    down, across = row[:, None] - row, column[:, None] - column
    near = abs(down) + abs(across) == 1
    if of in ("row", "column"):
        half = (column[:, None] < columns // 2) == (column < columns // 2)
        line, off = (down == 0, across) if of == "row" else (across == 0, down)
        named, elsewhere = half & line & (off != 0), half & (down != 0) & (across != 0)
        pairs = zip(alike, np.hypot(down, across), named, elsewhere, strict=True)
        return one_sample(label, np.array([_equally_far(*one) for one in pairs]), "cosine")
    mirror = (down == 0) & (column[:, None] + column == columns - 1)
    elsewhere = mirror & ~near if of == "one place" else ~near & ~np.eye(len(row), dtype=bool)
    pairs = zip(alike, near, elsewhere, strict=True)
    gaps = [one[here].mean() - one[there].mean() for one, here, there in pairs if there.any()]
    return one_sample(label, np.array(gaps), "cosine")


def _equally_far(alike: np.ndarray, far: np.ndarray, named: np.ndarray, elsewhere: np.ndarray) -> float:
    """How much more alike those named are than those elsewhere, interpolated to the same distances."""
    at = np.unique(far[elsewhere])
    means = [alike[elsewhere & (far == distance)].mean() for distance in at]
    there = named & (far >= at[0]) & (far <= at[-1])
    return float((alike[there] - np.interp(far[there], at, means)).mean())


def _beside(label: str, rows: dict[str, Any], evidence: dict[str, Any]) -> Difference:
    """Compare a ViT with a ResNet: its speed, less nine tenths of that, or how many more images fit."""
    own, other = (rows[evidence[side]] for side in SIDES)
    if evidence["of"] == "speed":
        found = one_sample(label, 100 * (np.array(own["over_resnet"]) - 0.9), "speed")
        ratio, low, high = (f"{0.9 + value / 100:.2f}" for value in (found.mean, found.low, found.high))
        return replace(found, said=f"{ratio} times as fast ({low} to {high})")
    more = 100 * (other["kept_bytes"] / own["kept_bytes"] - 1)  # counted, so without an interval
    return Difference(label, more, more, more, "%", said=f"{more:+.0f} %, counted")


def _heads(label: str, of: str) -> Difference:
    """Compare attention distances, in pixels: over heads, or of a single one by its error over photos."""
    found = load_result(LOOKED)["distance"]["trained"]
    distance, error = np.array(found["pixels"]), np.array(found["standard_error"])  # (L, h)
    half = len(distance) // 2
    config = load_pretrained(MODEL).config
    uniform = float(patch_distances(config.grid, config.patch_size).mean())
    if of == "depth":
        return spread_of(label, distance[half:].ravel(), distance[:half].ravel(), "px")
    if of in ("stem", "near"):
        stem, patches = load_result("inspection_stem")["on_the_way"], load_result(LOOKED)["on_the_way"]
        lower = [np.array(one)[:half].ravel() for one in (stem["16"]["pixels"], patches["16"]["distance"])]
        if of == "stem":
            return spread_of(label, *lower, "px")
        fewer = float(np.subtract(*((one < 0.9 * uniform).sum() for one in reversed(lower))))
        return Difference(label, fewer, fewer, fewer, "heads", said=f"{fewer:+.0f} heads, counted")
    lowest = distance[:LOWEST]
    head = np.unravel_index(lowest.argmax() if of == "wide" else lowest.argmin(), lowest.shape)
    gap = float(lowest[head] - 0.9 * uniform if of == "wide" else 0.5 * uniform - lowest[head])
    margin = 1.96 * float(error[head])
    return Difference(label, gap, gap - margin, gap + margin, "px")


def told(evidence: dict[str, Any]) -> str:
    """Say in HTML what was run for a line of evidence: file, data, model, seeds, minutes, and the command."""
    name = evidence.get("result", "")
    match evidence["kind"]:
        case "study" | "tasks" | "lead" | "fit":
            return _file(name) + _ran(read_rows(load_result(name))) + _again(name)
        case "runs":
            sides = [evidence[side] for side in SIDES]
            names = [side if isinstance(side, str) else side["result"] for side in sides]
            files = " and ".join(_file(name) for name in names)
            return files + _ran([_row_of(side) for side in sides]) + _again(*names)
        case "stored":
            found = load_result(name)
            photos = found.get("photos", "test photos of Tiny-ImageNet, one model")
            return f"{_file(name)}: {found['images']:,} {escape(photos)}{_again(name)}"
        case "beside":
            found = load_result(name)
            return (
                f"{_file(name)}: {found['rounds']} rounds, batches of {found['batch']}, "
                f"{escape(found['hardware']['processor'])}{_again(name)}"
            )
        case "heads":
            name = "inspection_stem" if evidence["of"] in ("stem", "near") else LOOKED
            photos = load_result(name)["images"]
            return f"{_file(name)}: {photos:,} test photos of Tiny-ImageNet, one model a side{_again(name)}"
        case _:
            return f"the weights of the model <code>{MODEL}</code> that ships, when this page is built"


def _file(name: str) -> str:
    address = read_repository().file_url(f"vit_lab/results/{name}.json")
    return f'<a href="{escape(address)}"><code>{escape(name)}</code></a>'


def _again(*names: str) -> str:
    """Say the commands that make results again, with a link to the settings of a study or recipe."""
    said = []
    for name in names:
        command = f"<code>{escape(load_result(name)['command'].partition(' --results ')[0])}</code>"
        for folder in ("studies", "recipes"):
            if name in packaged_names(folder, ".toml"):
                address = read_repository().file_url(f"vit_lab/{folder}/{name}.toml")
                command = f'<a href="{escape(address)}">{command}</a>'
        said.append(command)
    return f". Again: {' and '.join(said)}"


def _ran(rows: Sequence[Row]) -> str:
    """Say what rows have in common, and how long they took together."""
    data = ", ".join(dict.fromkeys(row.config["data"]["name"] for row in rows))
    sizes = sorted({row.facts["parameters"] for row in rows})
    parameters = " to ".join(f"{size:,}" for size in dict.fromkeys((sizes[0], sizes[-1])))
    seeds = sorted({len(row.runs) for row in rows})
    spoken = " or ".join(f"{count} seed{'s' * (count > 1)}" for count in seeds)
    tried = [rate.seconds or 0 for row in rows for rate in row.rates]
    minutes = (sum(run.seconds for row in rows for run in row.runs) + sum(tried)) / 60
    measured = "test" if rows[0].measure == "test_accuracy" else "held-out"
    said = f": {data}, {parameters} parameters, {spoken}, {minutes:,.0f} minutes in all, {measured} accuracy"
    at_an_end = [escape(label_of(row.task, row.name)) for row in rows if row.rates and not _inside(row)]
    ends = f"; the best rate lies at an end of those tried in: {'; '.join(at_an_end)}" if at_an_end else ""
    return said + ends


def _inside(row: Row) -> bool:
    """Whether the best learning rate has a neighbour on both sides that was tried (chapter 17)."""
    tried = sorted(row.rates, key=lambda one: one.rate)
    reached = torch.tensor([one.validation_accuracy or 0.0 for one in tried])
    return bool(inner_best(torch.tensor([one.rate for one in tried]), reached))
