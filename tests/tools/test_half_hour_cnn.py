"""The CNN beside the half hour: its rate is chosen on held-out photos, and the same command goes on."""

import json
from dataclasses import replace

import half_hour_cnn
import pytest
import torch

from vit_from_scratch.data import DataConfig
from vit_from_scratch.data.dataset import ImageData
from vit_from_scratch.model.cost import count_parameters, counted_flops
from vit_lab import load_recipe, load_result, read_rows

BEST = 0.06


def photos(count, seed):
    """Return photos of noise whose brightness tells their class, and the classes."""
    labels = torch.arange(count) % 10
    noise = torch.randint(0, 30, (count, 3, 32, 32), generator=torch.Generator().manual_seed(seed))
    return (noise + 25 * labels.view(-1, 1, 1, 1)).clamp(max=255).byte(), labels


def result_of(script, monkeypatch, folder, words):
    """Call a script of the half hour and return its result; what --out holds stays from call to call."""
    result = folder / "result.json"
    places = ["--data-dir", "DEST", "--out", folder / "out.json", "--results", result]
    monkeypatch.setattr("sys.argv", [script.__file__, *map(str, places), *words])
    script.main()
    return json.loads(result.read_text())


@pytest.fixture
def run(monkeypatch, tmp_path):
    parts = [tensor for seed in range(3) for tensor in photos(40, seed)]
    names = tuple("abcdefghij")
    data = ImageData(DataConfig("cifar10"), *parts, class_names=names)
    monkeypatch.setattr(half_hour_cnn, "open_dataset", lambda config, folder: data)
    trainings = []

    def trained(data, config):
        trainings.append((config.learning_rate, config.epochs, config.seed))
        model, history = real(data, config)
        reached = 0.9 if config.learning_rate == BEST else 0.5  # a single step tells no rates apart
        return model, [replace(history[-1], validation_accuracy=reached)]

    real = half_hour_cnn.trained
    monkeypatch.setattr(half_hour_cnn, "trained", trained)

    def run(*words):
        trainings.clear()
        result = result_of(half_hour_cnn, monkeypatch, tmp_path, words)
        return list(trainings), result

    return run


def test_each_rate_is_tried_and_the_best_held_out_one_is_measured(run):
    trainings, result = run("--epochs", "1", "--seeds", "0")
    (row,) = read_rows(result)
    reached = {one.rate: one.validation_accuracy for one in row.rates}
    assert tuple(reached) == half_hour_cnn.RATES
    assert row.chosen == BEST
    assert trainings == [*((rate, 1, 0) for rate in half_hour_cnn.RATES), (row.chosen, 1, 0)]
    assert row.measure == "test_accuracy"
    assert row.facts["test_images"] == 40


def test_the_same_command_runs_nothing_again_and_another_seed_alone(run):
    _, before = run("--epochs", "1", "--seeds", "0")
    trainings, after = run("--epochs", "1", "--seeds", "0")
    assert trainings == []
    assert after == before
    trainings, more = run("--epochs", "1", "--seeds", "0", "1")
    assert trainings == [(read_rows(before)[0].chosen, 1, 1)]
    assert [one["seed"] for one in more["rows"][0]["runs"]] == [0, 1]
    _, alone = run("--epochs", "1", "--seeds", "0")
    assert [one["seed"] for one in alone["rows"][0]["runs"]] == [0], "no seed that was not asked for"


def test_what_a_short_trial_left_is_not_taken_for_a_whole_run(run):
    run("--epochs", "1")
    with pytest.raises(SystemExit, match=r"made with \{'epochs': 1\}: expected \{'epochs': 2\}"):
        run("--epochs", "2")


def test_what_ships_is_of_this_network_and_of_the_recipes_photos():
    (row,) = read_rows(load_result("half_hour_cnn"))
    recipe, model = load_recipe(half_hour_cnn.RECIPE), half_hour_cnn.SmallCNN()
    assert row.facts["parameters"] == count_parameters(model)
    assert row.facts["forward_flops"] == counted_flops(model, (3, 32, 32))
    assert row.config["data"] == recipe.tables()["data"]
    same = ("augmentation", "augment_until", "batch_size", "label_smoothing", "schedule")
    assert all(row.config["train"][name] == recipe.tables()["train"][name] for name in same)
    tried = sorted(one.rate for one in row.rates)
    assert tried[0] < row.chosen < tried[-1], "not at the end of what was tried"
    assert {len(one.curve) for one in row.runs} == {half_hour_cnn.EPOCHS}
