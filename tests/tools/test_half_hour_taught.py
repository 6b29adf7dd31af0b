"""A ViT taught by a CNN in the same half hour: its targets, its clock, and that the same command goes on."""

from dataclasses import replace

import half_hour_cnn
import half_hour_taught
import pytest
import torch
from test_half_hour_cnn import photos, result_of
from torch import nn

from vit_from_scratch.data import DataConfig
from vit_from_scratch.data.dataset import ImageData
from vit_lab import load_result, read_rows
from vit_lab.experiments.recipes import load_recipe


@pytest.fixture
def data():
    parts = [tensor for seed, count in enumerate((64, 20, 20)) for tensor in photos(count, seed)]
    return ImageData(DataConfig("cifar10"), *parts, class_names=tuple("abcdefghij"))


@pytest.fixture
def run(monkeypatch, tmp_path, data):
    monkeypatch.setattr(half_hour_taught, "open_dataset", lambda config, folder: data)
    seeds = []

    def trained(data, config):
        seeds.append(config.seed)
        return real(data, replace(config, threads=1))

    def recipe_of(epochs, seed):
        recipe = whole(epochs, seed)
        return replace(recipe, train=replace(recipe.train, threads=1))

    real, whole = half_hour_cnn.trained, half_hour_taught.recipe_of
    monkeypatch.setattr(half_hour_cnn, "trained", trained)
    monkeypatch.setattr(half_hour_taught, "recipe_of", recipe_of)

    def run(*words):
        seeds.clear()
        one_seed = () if "--seeds" in words else ("--seeds", "0")
        result = result_of(half_hour_taught, monkeypatch, tmp_path, (*words, *one_seed))
        return list(seeds), result

    return run


def test_a_target_is_half_label_and_half_teacher():
    logits = torch.randn(5, 10, generator=torch.Generator().manual_seed(0))
    labels = torch.tensor([0, 3, 3, 9, 1])
    targets = half_hour_taught.taught_targets(lambda images: logits, torch.zeros(5, 3, 32, 32), labels)
    for target, row, label in zip(targets, logits, labels, strict=True):
        said = row.exp() / row.exp().sum()
        for kind in range(10):
            assert target[kind].item() == pytest.approx(
                0.5 * float(kind == label) + 0.5 * said[kind].item(), abs=1e-6
            )


def test_a_student_learns_what_its_teacher_says_of_each_photo(data):
    class Certain(nn.Module):
        """Sure of class 7, whatever it sees, and of which size that was."""

        def forward(self, images):
            sides.append(images.shape[-1])
            return 20.0 * nn.functional.one_hot(torch.full((len(images),), 7), 10)

    sides = []
    recipe = half_hour_taught.recipe_of(8, 0)
    recipe = replace(recipe, train=replace(recipe.train, warmup_steps=0, threads=1))
    model, history = half_hour_taught.taught(Certain(), data, recipe)
    said = model.eval()(data.normalise(data.test_images.float())).softmax(dim=1).mean(dim=0)
    assert said.argmax() == 7
    # half of the teacher, and its share of the labels
    assert said[7].item() == pytest.approx(0.55, abs=0.1)
    assert set(sides) == {32}, "the teacher sees photos of full size, also where the ViT's are small"
    assert [epoch.epoch for epoch in history] == list(range(1, 9))
    assert min(epoch.seconds for epoch in history) > 0


def test_both_are_measured_and_the_teachers_time_counts(run):
    seeds, result = run("--epochs", "2", "--teacher-epochs", "1")
    assert seeds == [0]
    taught, teacher = read_rows(result)
    assert (taught.name, teacher.name) == (half_hour_taught.NAME, half_hour_taught.TEACHER)
    assert {row.measure for row in (taught, teacher)} == {"test_accuracy"}
    own = sum(epoch["seconds"] for epoch in taught.runs[0].curve)
    lessons = sum(epoch["seconds"] for epoch in teacher.runs[0].curve)
    assert taught.runs[0].seconds == pytest.approx(own + lessons)
    assert teacher.runs[0].seconds == pytest.approx(lessons)
    assert taught.config["train"]["label_smoothing"] == 0
    assert teacher.config["train"]["optimiser"] == "sgd"


def test_the_same_command_runs_nothing_again_and_another_seed_alone(run):
    small = ("--epochs", "1", "--teacher-epochs", "1")
    _, before = run(*small)
    seeds, after = run(*small)
    assert seeds == []
    assert after == before
    seeds, more = run(*small, "--seeds", "0", "1")
    assert seeds == [1]
    assert [row.seeds for row in read_rows(more)] == [[0, 1], [0, 1]]
    with pytest.raises(SystemExit, match=r"'teacher_epochs': 1\}: expected .*'teacher_epochs': 2\}"):
        run("--epochs", "1", "--teacher-epochs", "2")


def test_what_ships_is_of_the_recipe_and_of_the_cnn_beside_it():
    taught, teacher = read_rows(load_result("half_hour_taught"))
    (alone,) = read_rows(load_result("half_hour_cnn"))
    expected = half_hour_taught.recipe_of(half_hour_taught.EPOCHS, 0).tables()
    assert taught.config["model"] == expected["model"]
    assert taught.config["train"] == expected["train"]
    assert taught.config["data"] == load_recipe(half_hour_taught.RECIPE).tables()["data"]
    assert teacher.config["train"]["learning_rate"] == alone.chosen
    assert teacher.facts["parameters"] == alone.facts["parameters"]
    assert [len(row.runs[0].curve) for row in (taught, teacher)] == [
        half_hour_taught.EPOCHS,
        half_hour_taught.TEACHER_EPOCHS,
    ]
