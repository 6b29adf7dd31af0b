"""The log of runs and trials: its tables say what the result files say, and it leaves none of them out."""

import re

import numpy as np
import pytest
from project_facts import ROOT
from sphinx.errors import ExtensionError
from vit_book import tried

from vit_lab import load_recipe, load_result
from vit_lab.experiments.packaged import packaged_names

LOG = (ROOT / "book" / "recipes_log.md").read_text(encoding="utf-8")


def results_with(key):
    """The names of the results with an entry of this name: "recipe" for runs, "rows" for studies."""
    return [name for name in packaged_names("results", ".json") if key in load_result(name)]


def cells(lines, first):
    """The cells of the row that begins with this cell."""
    (row,) = [line for line in lines if line.startswith(f"| {first} |")]
    return [cell.strip() for cell in row.strip("|").split("|")]


def directives(name):
    """The arguments of each directive of this name on the page."""
    return re.findall(rf"^```\{{{name}\}} (.+)$", LOG, flags=re.MULTILINE)


def test_the_log_shows_every_run_once():
    shown = [
        name
        for names in directives("runs")
        for line in tried.runs_text(names.split())
        for name in re.findall(r"^\| `(.+?)` \|", line)
    ]
    assert sorted(shown) == sorted(results_with("recipe"))


def test_the_log_shows_every_study_once():
    assert sorted(directives("study")) == sorted(results_with("rows"))


def test_a_run_stands_with_what_it_reached_and_what_it_was_to_reach():
    name = "cifar10-30min-cpu-plain"
    result, recipe = load_result(name), load_recipe(name)
    _, test, wanted, held_out, training, *_ = cells(tried.runs_text([name]), f"`{name}`")
    last = result["runs"][0]["curves"][-1]
    assert training == f"{last['train_accuracy']:.1%}"
    assert held_out == f"{last['validation_accuracy']:.1%}"
    assert test == f"{result['test_accuracy_mean']:.1%}"
    assert wanted == f"{recipe.aim:.1%}"


def test_a_run_whose_recipe_is_gone_stands_with_what_its_file_expected(monkeypatch):
    name = "cifar10-30min-cpu-plain"
    here = {key for key in tried.packaged_names("recipes", ".toml") if key != name}
    monkeypatch.setattr(tried, "packaged_names", lambda folder, ending: here)
    assert tried.wanted_of(load_result(name)) == load_result(name)["expect"]


def test_an_aim_written_after_a_run_is_not_shown_as_its_aim():
    name = "tiny-imagenet-gpu-unflipped"
    assert load_recipe(name).expect
    assert not load_result(name)["expect"]
    assert cells(tried.runs_text([name]), f"`{name}`")[2] == ""


def test_a_run_of_several_seeds_says_so_and_what_was_not_measured_is_empty():
    _, test, _, held_out, *_ = cells(tried.runs_text(["digits"]), "`digits`")
    assert held_out == ""
    assert test.endswith(f"({len(load_result('digits')['seeds'])} seeds)")


def test_a_run_without_labels_shows_shares_or_losses_and_no_test():
    names = {name: f"tiny-imagenet-masked-{name}" for name in ("patches", "pixels")}
    lines = tried.runs_text(["tiny-imagenet-masked-*"])
    for kind, name in names.items():
        last = load_result(name)["runs"][0]["curves"][-1]
        _, test, wanted, held_out, training, *_ = cells(lines, f"`{name}`")
        least = load_recipe(name).expect
        if kind == "patches":
            assert training == f"{last['train_accuracy']:.1%}"
            assert held_out == f"{last['validation_accuracy']:.1%}"
            assert wanted == f"{least['validation_accuracy']:.1%}"
        else:
            assert training == f"loss {last['train_loss']:.2f}"
            assert held_out == f"loss {last['validation_loss']:.2f}"
            assert wanted == f"loss {least['validation_loss']:.2f}"
        assert test == ""


def test_a_run_with_patience_shows_the_epoch_that_it_kept():
    result = load_result("imagenette-ls0")
    curve = result["runs"][0]["curves"]
    kept = min(curve, key=lambda epoch: epoch["validation_loss"])
    row = cells(tried.runs_text(["imagenette-ls0"]), "`imagenette-ls0`")
    assert f"{len(curve)}, kept {kept['epoch']}" in row
    assert f"{kept['validation_accuracy']:.1%}" in row


def test_what_a_curriculum_saved_is_measured_on_whole_epochs():
    result = {"config": {"train": {"curriculum": [[0.0, 24], [0.5, 32]]}}}
    result["runs"] = [{"curves": [{"seconds": seconds} for seconds in (1.0, 1.0, 100.0, 2.0, 2.0)]}]
    assert "24 pixels took 50% of the time of one at 32" in tried.time_saved(result)
    result["runs"][0]["curves"][-1]["seconds"] = 3.0
    assert tried.time_saved(result) == "", "the machine had other work"
    assert tried.time_saved({"config": {"train": {"curriculum": []}}}) == ""


def test_first_five_answers_and_mirror_images_are_told_where_they_were_measured(monkeypatch):
    name = "tiny-imagenet-plain"
    five = load_result(name)["test_top5_accuracy_mean"]
    mirrored = load_result(name) | {"test_flip_accuracy_mean": 0.8768}
    assert "first five" not in "".join(tried.runs_text(["digits"]))
    monkeypatch.setattr(tried, "load_result", lambda _: mirrored)
    (claim,) = [line for line in tried.runs_text([name]) if line.startswith("- ")]
    assert f"(Among its first five answers: {five:.1%}.) (Averaged with mirror images: 87.7%.)" in claim


def test_what_lies_between_two_runs_stands_with_what_was_measured_there():
    found = load_result("tiny-imagenet_weights")
    lines = tried.between_text("tiny-imagenet")
    head = next(line for line in lines if line.startswith("| share of the way |"))
    assert [cell.strip() for cell in head.strip("|").split("|")][1:] == list(found["along"])
    assert cells(lines, "held out")[1:] == [f"{value:.1%}" for value in found["along"].values()]
    assert f"right for {found['test_accuracy']:.1%}" in lines[-1]
    assert f"answers for {found['test_top5_accuracy']:.1%}" in lines[-1]


def test_a_transfer_stands_with_its_rates_and_what_its_seeds_reached():
    page = load_result("cifar10_transfer")
    lines = tried.study_text("cifar10_transfer")
    rows = [cells([line], "1 % of the labels") for line in lines if line.startswith("| 1 %")]
    assert len(rows) == len(page["rows"])
    for (task, start, test, chosen, rates), pair in zip(rows, page["rows"], strict=True):
        assert (task, start) == (pair["task"], pair["name"])
        best = max(row["validation_accuracy"] for row in pair["rates"])
        assert f"{chosen}:\N{NO-BREAK SPACE}{best:.1%}" in rates.split("; ")
        assert rates.count(";") == len(pair["rates"]) - 1
        reached = [run["test_accuracy"] for run in pair["runs"]]
        assert test.startswith(f"{sum(reached) / len(reached):.1%} ±")
        assert test.endswith(f"({len(reached)} seeds)")
    assert f"`{page['command']}`" in "".join(lines)


@pytest.mark.parametrize(
    ("name", "measured", "counted"),
    [
        ("transfer_scans", "test", ""),
        ("data_hunger", "held out", ""),
        ("half_hour_taught", "test", "Counting 10,000 test images puts a standard error of 0.3 points"),
        ("small_data", "held out", "Counting 5,000 held-out images puts a standard error of"),
    ],
)
def test_a_study_says_which_images_its_rows_were_measured_on(name, measured, counted):
    lines = tried.study_text(name)
    head = next(line for line in lines if line.startswith(("| task", "| trial")))
    assert {"test", "held out"}.intersection(cell.strip() for cell in head.split("|")) == {measured}
    said = [line for line in lines if line.startswith("Counting")]
    assert [line.startswith(counted or "-") for line in said] == [True] * bool(counted)
    key = {"test": "test_accuracy", "held out": "validation_accuracy"}[measured]
    assert all(run[key] is not None for row in load_result(name)["rows"] for run in row["runs"])


def test_a_seed_that_diverged_is_told_of(monkeypatch):
    page = load_result("cifar10_transfer")
    page["rows"][0]["diverged"] = [1]
    monkeypatch.setattr(tried, "load_result", lambda name: page)
    first, *others = [line for line in tried.study_text("cifar10_transfer") if line.startswith("| 1 %")]
    assert "without 1 that diverged" in first
    assert not any("diverged" in line for line in others)


@pytest.mark.parametrize(("name", "against"), [("small_data", "above"), ("cifar10_settings", "first")])
def test_trials_are_compared_with_the_row_that_they_change(name, against):
    found = [100 * row["validation_accuracy_mean"] for row in load_result(name)["rows"]]
    last = load_result(name)["rows"][-1]["name"]
    lines = tried.study_text(name)
    assert float(cells(lines, last)[-1]) == pytest.approx(
        found[-1] - (found[-2] if against == "above" else found[0]), abs=0.051
    )
    assert against in next(line for line in lines if line.startswith("| trial"))


def test_a_difference_of_nothing_has_no_minus():
    assert not any("-0.0" in line for name in directives("study") for line in tried.study_text(name))


def test_a_run_that_there_is_not_is_named():
    with pytest.raises(ExtensionError, match=r"no result of a run called a-run or b-\*"):
        tried.runs_text(["a-run", "b-*"])


def test_a_trial_shows_training_then_what_was_measured_with_its_deviation():
    row = load_result("depth_width")["rows"][0]
    _, _, training, found, _ = cells(tried.study_text("depth_width"), row["name"])
    held_out = [run["validation_accuracy"] for run in row["runs"]]
    trained = [run["curves"][-1]["train_accuracy"] for run in row["runs"]]
    assert training == f"{np.mean(trained):.1%}"
    assert found == f"{np.mean(held_out):.1%} ± {100 * np.std(held_out, ddof=1):.1f} (3 seeds)"
