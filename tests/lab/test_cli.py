import errno
import hashlib
import io
import json
import os
import subprocess
import sys
import tomllib

import pytest
import torch
from complaints import done, failed
from stopping import FILES, result, stop_once_saved

import vit_lab.runs.environment
from vit_lab.cli import main
from vit_lab.experiments.recipes import load_recipe, load_result, recipe_names
from vit_lab.runs.environment import commit, environment
from vit_lab.runs.run_folder import RunFolder

QUICK = ["train", "--data", "digits", "--epochs", "2"]
QUICK += ["--set", "model.depth=1", "model.dim=16", "data.train_size=100", "--out"]


def test_train_writes_the_whole_run(tmp_path, capsys):
    assert main([*QUICK, "runs/x"]) == 0
    folder = tmp_path / "runs" / "x"
    assert sorted(os.listdir(folder)) == FILES
    written = result(folder)
    assert f"test accuracy {written['test_accuracy']:.4f} on 360 images" in capsys.readouterr().out
    assert {"seed", "seconds", "hardware", "versions", "commit", "date", "test_loss"} <= written.keys()
    config = tomllib.loads((folder / "config.toml").read_text())
    assert (config["train"]["epochs"], config["model"]["dim"], config["data"]["name"]) == (2, 16, "digits")


def test_a_run_notes_its_threads_and_where_its_data_lay(tmp_path, monkeypatch):
    monkeypatch.setenv("VIT_DATA_DIR", str(tmp_path / "photos"))
    assert main([*QUICK, "x"]) == 0
    written = result(tmp_path / "x")
    assert written["hardware"]["threads"] == 1, "the recipe's, not torch's"
    assert written["data_dir"] == str(tmp_path / "photos")


def test_evaluate_repeats_the_number_or_says_that_it_differs(tmp_path, capsys):
    main([*QUICK, "x"])
    said = done(capsys, "evaluate", "x")
    assert f"test accuracy {result(tmp_path / 'x')['test_accuracy']:.4f}" in said
    assert f"test loss {result(tmp_path / 'x')['test_loss']:.4f}" in said
    assert "the same accuracy" in said
    (tmp_path / "x/result.json").write_text(json.dumps(result(tmp_path / "x") | {"test_accuracy": 0.5}))
    assert "when it was trained: test accuracy 0.5000" in done(capsys, "evaluate", "x")


def test_ctrl_c_says_how_to_go_on_and_the_same_command_does(tmp_path, capsys, monkeypatch):
    with monkeypatch.context() as patch:
        stop_once_saved(patch)
        assert main([*QUICK, "x"]) == 130
    assert "the same command goes on from there" in capsys.readouterr().err
    assert "x was stopped after epoch 1 of 2; it goes on" in done(capsys, *QUICK, "x")
    main([*QUICK, "never stopped"])
    model = (tmp_path / "x/model.safetensors").read_bytes()
    assert model == (tmp_path / "never stopped/model.safetensors").read_bytes()


def test_several_seeds_write_a_summary(tmp_path, capsys):
    command = [*QUICK, "all", "--seeds", "3", "5", "--keep-epochs", "0", "1", "--results", "results.json"]
    assert main(command) == 0
    for seed in (3, 5):
        kept = sorted(os.listdir(f"all/seed-{seed}/epochs"))
        assert kept == ["epoch-0000.safetensors", "epoch-0001.safetensors"]
    summary = json.loads((tmp_path / "all/summary.json").read_text())
    singles = [result(tmp_path / f"all/seed-{seed}")["test_accuracy"] for seed in (3, 5)]
    assert [run["test_accuracy"] for run in summary["runs"]] == singles
    assert summary["test_accuracy_mean"] == pytest.approx(sum(singles) / 2)
    assert summary["test_images"] == 360
    spent = [sum(epoch["seconds"] for epoch in run["curves"]) for run in summary["runs"]]
    assert [run["seconds"] for run in summary["runs"]] == pytest.approx(spent)
    assert summary["seconds_max"] == max(run["seconds"] for run in summary["runs"])
    assert summary["baseline"]["nearest_neighbours"] == 3
    assert [len(run["curves"]) for run in summary["runs"]] == [2, 2]
    assert json.loads((tmp_path / "results.json").read_text()) == summary
    assert f"mean test accuracy {summary['test_accuracy_mean']:.4f}" in capsys.readouterr().out


def test_show_prints_the_recipe_with_its_changes_and_trains_nothing(tmp_path, capsys):
    changes = ["--lr", "0.5", "--set", "train.optimiser=sgd"]
    shown = tomllib.loads(done(capsys, "train", "--recipe", "digits", "--show", *changes))
    assert "claim" not in shown, "that is about the recipe as it stands"
    assert (shown["train"]["learning_rate"], shown["train"]["optimiser"]) == (0.5, "sgd")
    assert shown["seeds"] == [0, 1, 2, 3, 4]
    alone = tomllib.loads(done(capsys, "train", "--data", "digits", "--show"))
    assert alone["seeds"] == [0], "which is what runs without --show"
    assert os.listdir(tmp_path) == []


def test_a_result_says_which_code_trained_it_whatever_lies_there_afterwards(tmp_path, monkeypatch):
    now = ["first"]

    class NextCommit(RunFolder):
        def on_start(self, state):
            super().on_start(state)
            now[0] = "second"  # while the first run trains

    monkeypatch.setattr("vit_lab.runs.environment.commit", lambda: now[0])
    monkeypatch.setattr("vit_lab.runs.run.RunFolder", NextCommit)
    assert main([*QUICK, "two", "--seeds", "0", "1"]) == 0
    commits = [result(tmp_path / "two" / f"seed-{seed}")["commit"] for seed in (0, 1)]
    assert commits == ["first", "second"]
    now[0] = "third"
    assert main([*QUICK, "two", "--seeds", "0", "1"]) == 0, "finished: nothing is trained"
    summary = json.loads((tmp_path / "two" / "summary.json").read_text())
    assert summary["commit"] == "second"
    assert [run.get("commit", "as above") for run in summary["runs"]] == ["first", "as above"]


def test_a_run_on_the_cpu_of_a_machine_with_a_gpu_says_so(monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "get_device_name", lambda device: f"GPU {device}")
    gpus = [environment(device=device)["hardware"]["gpu"] for device in ("cpu", "cuda:1", None)]
    assert gpus == [None, "GPU cuda:1", "GPU None"]


@pytest.mark.parametrize("device", ["mps", "xpu", "xpu:1"])
def test_a_run_on_another_device_is_not_called_one_on_the_cpu(device):
    assert environment(device=device)["hardware"]["gpu"] == device[:3]


def test_git_is_not_called_outside_of_a_checkout(tmp_path, monkeypatch):
    """A Mac without it would offer to install it."""
    calls, at = [], tmp_path / "site-packages" / "environment.py"
    at.parent.mkdir()
    monkeypatch.setattr(vit_lab.runs.environment, "__file__", str(at))
    monkeypatch.setattr(vit_lab.runs.environment.subprocess, "run", lambda words, **how: calls.append(words))
    assert (commit(), calls) == (None, [])


def test_a_run_that_begins_from_weights_notes_them_and_keeps_to_them(tmp_path, capsys):
    for seed in "01":
        assert main([*QUICK, f"start{seed}", "--seed", seed]) == 0
        os.rename(tmp_path / f"start{seed}" / "model.safetensors", f"{seed}.safetensors")
    assert main([*QUICK, "fine", "--weights", "0.safetensors", "--seeds", "0"]) == 0
    capsys.readouterr()
    start = json.loads((tmp_path / "fine" / "summary.json").read_text())["config"]["start"]
    digest = hashlib.sha256((tmp_path / "0.safetensors").read_bytes()).hexdigest()
    assert start == {"sha256": digest}
    os.rename("0.safetensors", "moved.safetensors")
    assert main([*QUICK, "fine", "--weights", "moved.safetensors", "--seeds", "0"]) == 0, "the same weights"
    again = failed(capsys, *QUICK, "fine", "--weights", "1.safetensors", "--seeds", "0")
    assert "fine/summary.json tells of other runs (start.sha256" in again
    os.remove(tmp_path / "fine" / "summary.json")
    again = failed(capsys, *QUICK, "fine", "--weights", "1.safetensors", "--seeds", "0")
    assert "holds a run with other settings: start.sha256" in again
    assert "no checkpoint at none" in failed(capsys, *QUICK, "new", "--weights", "none.safetensors")
    assert "weights none: expected one of" in failed(capsys, *QUICK, "new", "--weights", "none")
    assert not (tmp_path / "new").exists()


def test_more_neighbours_than_images_are_refused_before_training(tmp_path, capsys):
    (tmp_path / "mine.toml").write_text("neighbours = 5000\n[data]\nname = 'digits'\n")
    message = failed(capsys, "train", "--recipe", "mine.toml", "--out", "x")
    assert "neighbours = 5000: expected at most the 1,200 training images" in message
    assert not (tmp_path / "x").exists()


def test_a_loss_that_is_not_finite_ends_with_one_line(capsys):
    command = [*QUICK, "x", "--lr", "1e30", "--set", "train.clip_norm=0", "train.warmup_steps=0"]
    assert main([*command, "train.optimiser=sgd"]) == 1
    err = capsys.readouterr().err
    assert err.startswith("vit: the loss is ")
    assert err.count("\n") == 1


def test_recipes_lists_every_recipe_with_the_number_of_its_run(capsys):
    lines = {line.split()[0]: line for line in done(capsys, "recipes").splitlines() if line}
    assert set(recipe_names()) <= set(lines)
    assert f"{load_result('digits')['test_accuracy_mean']:.1%}" in lines["digits"]
    assert "not yet run" in lines["pets-144"]
    name = "cifar10-half-hour-conv"
    reached, recipe = load_result(name)["test_accuracy_mean"], load_recipe(name)
    told = [f"{reached:.1%}", f"{recipe.expect['test_accuracy']:.1%}", f"{recipe.aim:.0%}"]
    assert lines[name].split()[2:5] == told


def test_runs_that_are_added_to_results_leave_its_claim_as_it_was(tmp_path, capsys):
    page, results = tmp_path / "page.toml", tmp_path / "results.json"
    words = (
        'claim = "{}"\ncommand = "first"\nseeds = {}\n[expect]\ntest_accuracy = {}\n[data]\nname = "digits"\n'
    )
    settings = "[model]\npatch_size = 4\ndim = 8\ndepth = 1\nheads = 1\nmlp_dim = 8\n[train]\nsteps = 1\n"
    command = ["train", "--recipe", str(page), "--results", str(results), "--add-to-results", "--out"]
    for seeds, claim, least in (([0], "A tenth.", 0.1), ([0, 1], "A twentieth.", 0.05)):
        page.write_text(words.format(claim, seeds, least) + settings)
        assert main([*command, str(tmp_path / f"out-{len(seeds)}")]) == 0
    told = json.loads(results.read_text())
    assert (told["seeds"], told["claim"], told["expect"]) == ([0, 1], "A tenth.", {"test_accuracy": 0.1})
    assert "seed 0 was run before, and is taken over." in capsys.readouterr().out


@pytest.mark.parametrize("damage", ["config.toml", "result.json", "model.safetensors"])
def test_evaluating_a_damaged_run_is_one_line(tmp_path, capsys, damage):
    main([*QUICK, "x"])
    (tmp_path / "x" / damage).write_text("?")
    assert damage in failed(capsys, "evaluate", "x")


def test_the_package_is_the_command():
    command = [sys.executable, "-m", "vit_lab", "train", "--data", "digit"]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 2
    assert done.stderr.startswith("vit: unknown data set")
    assert "Traceback" not in done.stderr


def test_a_reader_that_leaves_early_is_no_traceback():
    reader, writer = os.pipe()
    os.close(reader)
    with os.fdopen(writer, "w") as output:
        command = [sys.executable, "-m", "vit_lab", "recipes"]
        done = subprocess.run(command, stdout=output, stderr=subprocess.PIPE, text=True)
    assert (done.returncode, done.stderr) == (1, "")


@pytest.mark.parametrize(("system", "said"), [("win32", 0), ("linux", 1)])
def test_windows_calls_a_pipe_whose_reader_left_an_invalid_argument(monkeypatch, capsys, system, said):
    class Left(io.FileIO):
        def write(self, content):
            raise OSError(errno.EINVAL, "Invalid argument")

    monkeypatch.setattr(sys, "platform", system)
    with Left(os.devnull, "w") as pipe, monkeypatch.context() as patch:
        patch.setattr(sys, "stdout", io.TextIOWrapper(pipe, write_through=True))
        assert main(["recipes"]) == 1
    assert capsys.readouterr().err.count("cannot print: Invalid argument.") == said


def test_a_broken_pipe_elsewhere_is_not_hidden(monkeypatch, capsys):
    def break_off(chosen):
        raise BrokenPipeError("a worker died")

    monkeypatch.setattr("vit_lab.cli.recipes.run", break_off)
    assert main(["recipes"]) == 1
    assert "BrokenPipeError: a worker died" in capsys.readouterr().err


@pytest.mark.slow
def test_digits_reach_what_the_recipe_expects(tmp_path):
    assert main(["train", "--recipe", "digits", "--out", "all"]) == 0
    summary = json.loads((tmp_path / "all/summary.json").read_text())
    assert summary["test_accuracy_mean"] >= summary["expect"]["test_accuracy"]
    assert summary["hardware"]["threads"] == 1, "as the recipe says, whatever torch's own number is"
