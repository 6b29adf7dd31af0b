"""The numbers that ship: written by runs of the recipes as they stand."""

import itertools
from importlib import resources

import pytest

from vit_from_scratch.data import DataConfig
from vit_from_scratch.settings import from_table
from vit_from_scratch.training import TrainConfig
from vit_lab import load_recipe, load_result, load_trials, recipe_names, runs_of
from vit_lab.experiments.sweeps import with_rate
from vit_lab.experiments.transfers import load_transfers, transfer_names
from vit_lab.runs.run_settings import differences

FOLDER = resources.files("vit_lab").joinpath("results")
RESULTS = [name for name in recipe_names() if FOLDER.joinpath(f"{name}.json").is_file()]
PAGES = resources.files("vit_lab").joinpath("trials")
TRIALS = sorted(page.name.removesuffix(".toml") for page in PAGES.iterdir() if page.name.endswith(".toml"))
NOT_RUN = [name for name in TRIALS if not FOLDER.joinpath(f"{name}.json").is_file()]
TRANSFERS = [name for name in transfer_names() if FOLDER.joinpath(f"{name}.json").is_file()]


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
    before = result["expect"][measured]  # written before the run
    if measured == "validation_loss":
        reached, expected, before = -reached, -expected, -before
    if reached >= before:
        assert (recipe.expect, recipe.claim) == (result["expect"], result["claim"]), "not moved afterwards"
    else:
        assert recipe.aim >= before, "a missed aim stays in the recipe"
        assert reached - 0.02 < expected <= reached


@pytest.mark.parametrize("name", sorted(set(TRIALS) - set(NOT_RUN)))
def test_a_result_of_trials_comes_from_their_page_as_it_stands(name):
    result, page = load_result(name), load_trials(name)
    assert (result["claim"], result["base"]) == (page.claim, page.base)
    recipes = page.recipes()
    assert [trial["name"] for trial in result["trials"]] == list(recipes)
    for trial, recipe in zip(result["trials"], recipes.values(), strict=True):
        assert_settings(trial["config"], recipe)
        runs = runs_of(trial)
        assert [run["seed"] for run in runs] == list(page.seeds)
        for run in runs:
            assert len(run["curves"]) == recipe.train.epochs
            assert run["validation_accuracy"] == run["curves"][-1]["validation_accuracy"]
        mean = sum(run["validation_accuracy"] for run in runs) / len(runs)
        assert trial["validation_accuracy"] == pytest.approx(mean)


@pytest.mark.parametrize("name", TRIALS)
def test_a_page_of_trials_says_whether_it_has_been_run(name):
    text = PAGES.joinpath(f"{name}.toml").read_text(encoding="utf-8")
    assert ("Not run so far." in text) == (name in NOT_RUN)


@pytest.mark.parametrize("name", TRANSFERS)
def test_a_result_of_transfers_comes_from_its_page_as_it_stands(name):
    result, page = load_result(name), load_transfers(name)
    assert result["claim"] == page.claim
    recipes = page.pairs()
    assert [(pair["task"], pair["start"]) for pair in result["pairs"]] == list(recipes)
    for pair, recipe in zip(result["pairs"], recipes.values(), strict=True):
        assert_settings(pair["config"], with_rate(recipe, pair["chosen"]))
        assert sorted(row["rate"] for row in pair["rates"]) == sorted(page.rates_of(pair["start"]))
        assert [run["seed"] for run in pair["runs"]] + pair["diverged"] == list(page.seeds)
        assert all(len(run["validation_accuracies"]) == recipe.train.epochs for run in pair["runs"])
        mean = sum(run["test_accuracy"] for run in pair["runs"]) / len(pair["runs"])
        assert pair["test_accuracy_mean"] == pytest.approx(mean)


@pytest.mark.parametrize("name", transfer_names())
def test_a_page_of_transfers_says_whether_it_has_been_run(name):
    pages = resources.files("vit_lab").joinpath("transfers")
    text = pages.joinpath(f"{name}.toml").read_text(encoding="utf-8")
    assert ("Not yet run." in text) == (name not in TRANSFERS)


def test_the_digits_result_has_the_neighbours_beside_it():
    assert load_result("digits")["baseline"]["nearest_neighbours"] == 3
    assert 0.98 <= load_result("digits")["baseline"]["test_accuracy"] <= 0.995


def test_the_ladder_takes_the_rates_that_did_best_on_held_out_photos():
    trials = load_result("small_data_rates")["trials"]
    ladder = load_trials("small_data").recipes()
    for optimiser, rung in (("adamw", "plain ViT, AdamW"), ("muon", "+ Muon")):
        swept = [trial for trial in trials if trial["config"]["train"]["optimiser"] == optimiser]
        best = max(swept, key=lambda trial: trial["validation_accuracy"])
        assert ladder[rung].train.learning_rate == best["config"]["train"]["learning_rate"]
        rates = sorted(trial["config"]["train"]["learning_rate"] for trial in swept)
        assert rates[0] < ladder[rung].train.learning_rate < rates[-1], "not at the end of what was tried"
    ordered = list(ladder.values())
    for before, after in itertools.pairwise(ordered):
        changed = differences(before.tables(), after.tables())
        at_once = {name.split(" ")[0] for name in changed}
        assert len({name.split(".")[1] for name in at_once} - {"learning_rate"}) == 1, "one thing a rung"


def test_each_shape_takes_the_rate_that_did_best_on_held_out_photos():
    swept = load_result("depth_width_rates")["trials"]
    for recipe in load_trials("depth_width").recipes().values():
        trials = [trial for trial in swept if trial["config"]["model"]["depth"] == recipe.model["depth"]]
        assert all(trial["config"]["model"].items() >= recipe.model.items() for trial in trials)
        best = max(trials, key=lambda trial: trial["validation_accuracy"])
        rates = sorted(trial["config"]["train"]["learning_rate"] for trial in trials)
        assert recipe.train.learning_rate == best["config"]["train"]["learning_rate"]
        assert rates[0] < recipe.train.learning_rate < rates[-1], "not at the end of what was tried"
        assert {trial["config"]["train"]["epochs"] for trial in trials} == {recipe.train.epochs // 2}
