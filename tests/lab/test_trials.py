import json
import os
from dataclasses import replace

import pytest
import torch
from torch.utils.flop_counter import FlopCounterMode

from vit_from_scratch import InputError, VisionTransformer, ViTConfig
from vit_from_scratch.model.cost import forward_flops
from vit_lab import load_trials, run_trials
from vit_lab.cli import main
from vit_lab.experiments.trials import slug

PAGE = """
claim = "Width and rate."
command = "vit trials mine.toml"
base = "digits"
cumulative = true

[changes.data]
validation_size = 100
[changes.model]
dim = 8
heads = 2
depth = 1
[changes.train]
epochs = 1

[trials."as it is"]
[trials."+ wider".model]
dim = 16
[trials."+ faster".train]
learning_rate = 0.01
"""


@pytest.fixture
def page(tmp_path):
    path = tmp_path / "mine.toml"
    path.write_text(PAGE)
    return path


def test_cumulative_trials_keep_the_changes_before_them(page):
    recipes = load_trials(str(page)).recipes()
    found = [(r.model["dim"], r.train.learning_rate, r.train.epochs) for r in recipes.values()]
    rate = found[0][1]
    assert rate != 0.01
    assert found == [(8, rate, 1), (16, rate, 1), (16, 0.01, 1)]


def test_other_trials_change_one_thing_each(page):
    page.write_text(PAGE.replace("cumulative = true", ""))
    assert [r.model["dim"] for r in load_trials(str(page)).recipes().values()] == [8, 16, 8]


def test_trials_are_run_once_and_written_down(page, tmp_path, capsys):
    folder, results = tmp_path / "out", tmp_path / "results.json"
    assert main(["trials", str(page), "--out", str(folder), "--results", str(results)]) == 0
    out = capsys.readouterr().out
    summary = json.loads(results.read_text())
    assert [trial["name"] for trial in summary["trials"]] == ["as it is", "+ wider", "+ faster"]
    for trial in summary["trials"]:
        assert f"{trial['validation_accuracy']:.4f} validation accuracy" in out
        (run,) = trial["runs"]
        assert run["curves"][-1]["validation_accuracy"] == trial["validation_accuracy"]
        assert trial["validation_accuracy_std"] is None
    assert {"hardware", "versions", "commit", "date"} <= summary.keys()
    again = run_trials(load_trials(str(page)), folder)
    assert again["trials"] == summary["trials"]


def test_trials_of_several_seeds_have_a_mean_and_a_spread(page, tmp_path, capsys):
    page.write_text("seeds = [0, 3]\n" + PAGE)
    folder, results = tmp_path / "out", tmp_path / "results.json"
    assert main(["trials", str(page), "--out", str(folder), "--results", str(results)]) == 0
    out = capsys.readouterr().out
    trial = json.loads(results.read_text())["trials"][1]
    assert [run["seed"] for run in trial["runs"]] == [0, 3]
    reached = [run["validation_accuracy"] for run in trial["runs"]]
    assert trial["validation_accuracy"] == pytest.approx(sum(reached) / 2)
    assert trial["validation_accuracy_std"] == pytest.approx(abs(reached[0] - reached[1]) / 2**0.5)
    assert f"standard deviation {trial['validation_accuracy_std']:.4f}, 2 seeds" in out
    alone = run_trials(replace(load_trials(str(page)), seeds=(3,)), tmp_path / "alone")["trials"][1]
    losses = [run["curves"][-1]["validation_loss"] for run in (alone["runs"][0], trial["runs"][1])]
    assert losses[0] == losses[1]
    page.write_text("seeds = [0]\n" + PAGE)  # would lose a seed
    assert main(["trials", str(page), "--out", str(tmp_path / "new"), "--results", str(results)]) == 2
    assert "+ wider, seed 3" in capsys.readouterr().err
    page.write_text("seeds = [0, 0]\n" + PAGE)
    with pytest.raises(InputError, match=r"seeds = .*each of them once"):
        load_trials(str(page))


def test_trials_never_touch_the_test_set(page, tmp_path, monkeypatch):
    from vit_from_scratch.data import ImageData

    batches = ImageData.batches

    def guarded(self, part, *arguments, **options):
        assert part == "validation"
        return batches(self, part, *arguments, **options)

    monkeypatch.setattr(ImageData, "batches", guarded)
    run_trials(load_trials(str(page)), tmp_path / "out")


def test_trials_without_held_out_images_are_refused(page, tmp_path):
    page.write_text(PAGE.replace("validation_size = 100", "validation_size = 0"))
    with pytest.raises(InputError, match=r"trial 'as it is' holds no images out"):
        run_trials(load_trials(str(page)), tmp_path / "out")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("claim = ", "is not TOML"),
        ('claim = "x"\ncommand = ""\nbase = "digits"\ntrials = {}', "trials = {}: expected at least one"),
        ('clam = "x"', "unknown option of the file 'clam'"),
        (
            'claim = "x"\ncommand = ""\nbase = "digits"\ntrials = {a = 5}',
            r"trials\.a = 5: expected a table of",
        ),
    ],
)
def test_a_page_that_is_wrong_is_one_clear_error(page, text, message):
    page.write_text(text)
    with pytest.raises(InputError, match=message):
        load_trials(str(page))


def test_a_trial_that_is_no_change_of_a_recipe_is_one_clear_error(page):
    page.write_text(PAGE + "[trials.wrong]\ntrain = 5\n")
    with pytest.raises(InputError, match=r"train = 5: expected a table"):
        load_trials(str(page)).recipes()


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("..", r"trial '\.\.' cannot name a folder: expected letters"),
        ("+++", "cannot name a folder"),
        ("summary.json", "cannot name a folder"),
        ("x" * 201, "cannot name a folder"),
        ("As IT - is", "trials 'as it is' and 'As IT - is' would share the folder 'as-it-is'"),
    ],
)
def test_names_that_are_no_folders_of_their_own_are_refused_before_anything_is_trained(page, name, message):
    page.write_text(PAGE + f'[trials."{name}"]\n')
    with pytest.raises(InputError, match=message):
        load_trials(str(page))


@pytest.mark.parametrize("command", ["trials", "train --recipe"])
def test_a_file_without_a_name_is_refused(tmp_path, monkeypatch, capsys, command):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "...toml").write_text(PAGE if command == "trials" else '[data]\nname = "digits"\n')
    assert main([*command.split(), "...toml"]) == 2
    assert "the file's name = '..': expected one with letters or digits" in capsys.readouterr().err
    assert os.listdir(tmp_path) == ["...toml"]


def test_a_summary_of_other_trials_is_never_replaced(page, tmp_path, capsys):
    folder, results = tmp_path / "out", tmp_path / "results.json"
    command = ["trials", str(page), "--out", str(folder), "--results", str(results)]
    assert main(command) == 0
    before = results.read_text()
    page.write_text(PAGE + "[trials.more.model]\ndim = 4\n")
    assert main(command) == 0, "a trial more loses nothing"
    more = results.read_text()
    assert len(json.loads(more)["trials"]) == 4
    page.write_text(PAGE)
    assert main(command) == 2
    assert "tells of other runs (more would be lost)" in capsys.readouterr().err
    assert results.read_text() == more
    results.write_text(before)
    page.write_text(PAGE.replace("dim = 16", "dim = 32"))
    assert main([*command[:3], str(tmp_path / "new"), *command[4:]]) == 2
    assert "model.dim (16 there, 32 now)" in capsys.readouterr().err
    assert not (tmp_path / "new").exists()


def test_a_page_in_another_encoding_is_one_clear_error(page):
    page.write_bytes(b"claim = '\xff'")
    with pytest.raises(InputError, match=r"is not TOML: 'utf-8' codec"):
        load_trials(str(page))


def test_with_patience_a_trial_is_worth_the_epoch_that_it_keeps(page, tmp_path):
    page.write_text(PAGE.replace("epochs = 1", "epochs = 30\npatience = 1\nlearning_rate = 0.3\nthreads = 2"))
    summary = run_trials(load_trials(str(page)), tmp_path / "out")
    assert summary["hardware"]["threads"] == 2
    for trial in summary["trials"]:
        (run,) = trial["runs"]
        losses = [epoch["validation_loss"] for epoch in run["curves"]]
        best = losses.index(min(losses))
        assert best < len(losses) - 1, "it ran on for an epoch"
        assert trial["validation_accuracy"] == run["curves"][best]["validation_accuracy"]


def test_a_page_that_is_not_there_is_refused():
    with pytest.raises(InputError, match=r"unknown page of trials 'nowhere': expected one of"):
        load_trials("nowhere")


def test_a_trials_name_becomes_a_folder():
    assert slug("+ flip, shift") == "flip-shift"


def test_depth_is_held_against_width_at_equal_cost():
    recipes = load_trials("depth_width").recipes().values()
    configs = [ViTConfig.from_dict({"image_size": 32, "num_classes": 10, **r.model}) for r in recipes]
    costs = [forward_flops(config) for config in configs]
    assert len({config.depth for config in configs}) == 5
    assert max(costs) / min(costs) < 1.015
    with FlopCounterMode(display=False) as counter:  # the widest, by torch
        VisionTransformer(configs[0]).to("meta")(torch.zeros(1, 3, 32, 32, device="meta"))
    assert counter.get_total_flops() == costs[0]
    assert all(not r.train.curriculum for r in recipes)  # smaller images would cost less
