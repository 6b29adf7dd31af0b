"""The numbers that ship: written by runs of the recipes as they stand."""

import itertools
from importlib import resources

import pytest

from vit_from_scratch.data import DataConfig
from vit_from_scratch.settings import from_table
from vit_from_scratch.training import TrainConfig
from vit_lab import load_recipe, load_result, load_study, read_rows, recipe_names, study_names
from vit_lab.runs.run_settings import differences

FOLDER = resources.files("vit_lab").joinpath("results")
RESULTS = [name for name in recipe_names() if FOLDER.joinpath(f"{name}.json").is_file()]
STUDIES = [name for name in study_names() if FOLDER.joinpath(f"{name}.json").is_file()]


def assert_settings(ran, recipe):
    assert from_table(TrainConfig, ran["train"], "train") == recipe.train
    assert from_table(DataConfig, ran["data"], "data") == recipe.data
    assert ran["model"] == recipe.model


@pytest.mark.parametrize("name", RESULTS)
def test_a_result_comes_from_its_recipe_as_it_stands(name):
    assert_settings(load_result(name)["config"], load_recipe(name))


@pytest.mark.parametrize("name", RESULTS)
def test_a_result_says_where_it_comes_from(name):
    result = load_result(name)
    assert result["seeds"] == list(load_recipe(name).seeds)
    assert result["command"] == load_recipe(name).command, "one that can be run today"
    assert result["hardware"]["processor"]
    assert result["versions"]["torch"]
    assert result["date"]
    settings = result["config"]["train"]
    for run in result["runs"]:
        epochs = len(run["curves"])
        stopped_early = 0 < settings.get("patience", 0) < epochs < settings["epochs"]
        by_steps = settings.get("steps", 0) and run["curves"][-1]["step"] == settings["steps"]
        assert epochs == settings["epochs"] or stopped_early or by_steps


@pytest.mark.parametrize("name", RESULTS)
def test_a_result_reaches_what_its_recipe_expects(name):
    result, recipe = load_result(name), load_recipe(name)
    (measured,) = recipe.expect
    reached, expected = result[f"{measured}_mean"], recipe.expect[measured]
    before = (result["expect"] or recipe.expect)[measured]  # written before the run, if anything was
    if measured == "validation_loss":
        reached, expected, before = -reached, -expected, -before
    if reached >= before:
        assert (before, recipe.claim) == (expected, result["claim"]), "not moved afterwards"
    else:
        assert recipe.aim >= before, "a missed aim stays in the recipe"
        assert reached - 0.02 < expected <= reached


@pytest.mark.parametrize("name", STUDIES)
def test_a_result_of_a_study_comes_from_its_page_as_it_stands(name):
    result, study = load_result(name), load_study(name)
    assert (result["claim"], result.get("base", "")) == (study.claim, study.base)
    assert result["command"] == study.command, "one that can be run today"
    rows = read_rows(result)
    variants = [one for one in study.variants() if one.label in {row.label for row in rows}]
    assert [row.label for row in rows] == [variant.label for variant in variants]
    for row, variant in zip(rows, variants, strict=True):
        recipe = variant.recipe.with_rate(row.chosen) if variant.rates else variant.recipe
        assert_settings(row.config, recipe)
        assert sorted(one.rate for one in row.rates) == sorted(variant.rates)
        assert row.seeds == list(study.seeds)
        patient = (
            recipe.train.patience > 0
        )  # then a run may end early, and keeps the epoch of the lowest loss
        lengths = {len(run.curve) for run in row.runs}
        assert max(lengths) <= recipe.train.epochs
        assert patient or lengths == {recipe.train.epochs}
        assert row.measure == ("test_accuracy" if study.test else "validation_accuracy")
        if not study.test:
            losses = [[epoch["validation_loss"] for epoch in run.curve] for run in row.runs]
            kept = [own.index(min(own)) if patient else -1 for own in losses]
            curves = zip(row.runs, kept, strict=True)
            assert row.values() == [run.curve[epoch]["validation_accuracy"] for run, epoch in curves]


@pytest.mark.parametrize("name", STUDIES + RESULTS)
def test_what_a_result_says_of_its_rows_follows_from_their_runs(name):
    result = load_result(name)
    for table, row in zip(result.get("rows", [result]), read_rows(result), strict=True):
        assert table[f"{row.measure}_mean"] == pytest.approx(row.mean)
        assert table[f"{row.measure}_std"] == (pytest.approx(row.std) if row.std is not None else None)
        again = row.table()
        assert again.keys() >= table.keys() - {"recipe", "claim", "command", "expect", "aim", "changes"}
        assert again["runs"] == table["runs"] or "name" in table


@pytest.mark.parametrize("name", study_names())
def test_a_study_says_whether_it_has_been_run(name):
    text = resources.files("vit_lab").joinpath("studies", f"{name}.toml").read_text("utf-8")
    assert ("Not yet run." in text) == (name not in STUDIES)
    there = len(read_rows(load_result(name))) if name in STUDIES else 0
    assert ("Not yet run to its end" in text) == (0 < there < len(load_study(name).variants()))


def test_the_ladder_takes_the_rates_that_did_best_on_held_out_photos():
    rows = load_result("small_data_rates")["rows"]
    ladder = load_study("small_data").recipes()
    for optimiser, rung in (("adamw", "plain ViT, AdamW"), ("muon", "+ Muon")):
        swept = [row for row in rows if row["config"]["train"]["optimiser"] == optimiser]
        best = max(swept, key=lambda row: row["validation_accuracy_mean"])
        assert ladder[rung].train.learning_rate == best["config"]["train"]["learning_rate"]
        rates = sorted(row["config"]["train"]["learning_rate"] for row in swept)
        assert rates[0] < ladder[rung].train.learning_rate < rates[-1], "not at the end of what was tried"
    ordered = list(ladder.values())
    for before, after in itertools.pairwise(ordered):
        changed = differences(before.tables(), after.tables())
        at_once = {name.split(" ")[0] for name in changed}
        assert len({name.split(".")[1] for name in at_once} - {"learning_rate"}) == 1, "one thing a rung"


def test_each_shape_takes_the_rate_that_did_best_on_held_out_photos():
    swept = load_result("depth_width_rates")["rows"]
    for recipe in load_study("depth_width").recipes().values():
        rows = [row for row in swept if row["config"]["model"]["depth"] == recipe.model["depth"]]
        assert all(row["config"]["model"].items() >= recipe.model.items() for row in rows)
        best = max(rows, key=lambda row: row["validation_accuracy_mean"])
        rates = sorted(row["config"]["train"]["learning_rate"] for row in rows)
        assert recipe.train.learning_rate == best["config"]["train"]["learning_rate"]
        assert rates[0] < recipe.train.learning_rate < rates[-1], "not at the end of what was tried"
        assert {row["config"]["train"]["epochs"] for row in rows} == {recipe.train.epochs // 2}
