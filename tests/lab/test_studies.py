"""Studies: a base recipe, what varies over it, and a table; rows held out alone, or swept and tested."""

import json
import multiprocessing
import os
import signal
import subprocess
import sys
import time
from dataclasses import replace

import psutil
import pytest
import torch
from complaints import done, failed
from study_pages import SWEPT, TRIED
from torch.utils.flop_counter import FlopCounterMode

from vit_from_scratch import InputError, VisionTransformer, ViTConfig
from vit_from_scratch.data import ImageData
from vit_from_scratch.errors import DivergedError
from vit_from_scratch.model.cost import forward_flops
from vit_from_scratch.training.schedules import schedule_factor
from vit_lab import load_study, run_study, study_names
from vit_lab.cli import main
from vit_lab.experiments import study_runs
from vit_lab.experiments.at_once import train_at_once
from vit_lab.experiments.records import rate_folder
from vit_lab.experiments.study import miniature
from vit_lab.experiments.summaries import check_summary

FOUR = [("few", "from scratch"), ("few", "same"), ("more", "from scratch"), ("more", "same")]


def test_cumulative_rows_keep_the_changes_before_them(page):
    recipes = page.write(TRIED).load().recipes()
    found = [(r.model["dim"], r.train.learning_rate, r.train.epochs) for r in recipes.values()]
    rate = found[0][1]
    assert rate != 0.01
    assert found == [(8, rate, 1), (16, rate, 1), (16, 0.01, 1)]


def test_a_row_is_the_study_with_its_task_and_its_changes_laid_over(page):
    few, _, _, other = page.write(SWEPT).load().variants()
    assert [(one.task, one.name) for one in page.load().variants()] == FOUR
    train = few.recipe.train
    assert (few.recipe.data.train_size, train.optimiser, train.learning_rate) == (40, "adamw", 0.003)
    train = other.recipe.train
    assert (other.recipe.data.train_size, train.optimiser, train.learning_rate) == (80, "sgd", 0.1)
    assert few.recipe.name == "few-from-scratch"


def test_rows_are_run_once_and_written_down(page, capsys):
    out = done(capsys, *page.write(TRIED).command())
    summary = json.loads(page.results.read_text())
    assert [row["name"] for row in summary["rows"]] == ["as it is", "+ wider", "+ faster"]
    for row in summary["rows"]:
        assert f"{row['validation_accuracy_mean']:.4f} validation accuracy" in out
        (run,) = row["runs"]
        assert run["curves"][-1]["validation_accuracy"] == row["validation_accuracy_mean"]
        assert row["validation_accuracy_std"] is None
    assert {"hardware", "versions", "commit", "date"} <= summary.keys()
    assert run_study(page.load(), page.out) == summary


def test_a_folder_over_runs_is_held_while_they_train(page):
    held, lock = [], page.out / ".lock"
    run_study(page.write(TRIED).load(), page.out, report=lambda row: held.append(lock.exists()))
    assert held == [True] * 3
    assert not lock.exists()


def test_a_study_looks_for_data_where_it_is_told(page, tmp_path, monkeypatch):
    seen, opened = [], study_runs.open_dataset

    def noted(config, where=None):
        seen.append(str(where))
        return opened(config)

    monkeypatch.setattr(study_runs, "open_dataset", noted)
    assert main([*page.write(TRIED).command(), "--data-dir", str(tmp_path)]) == 0
    assert set(seen) == {str(tmp_path)}


def test_rows_of_several_seeds_have_a_mean_and_a_standard_deviation(page, tmp_path, capsys):
    assert main(page.write("seeds = [0, 3]\n" + TRIED).command()) == 0
    row = json.loads(page.results.read_text())["rows"][1]
    assert [run["seed"] for run in row["runs"]] == [0, 3]
    reached = [run["validation_accuracy"] for run in row["runs"]]
    assert row["validation_accuracy_mean"] == pytest.approx(sum(reached) / 2)
    assert row["validation_accuracy_std"] == pytest.approx(abs(reached[0] - reached[1]) / 2**0.5)
    assert f"standard deviation {row['validation_accuracy_std']:.4f}, 2 seeds" in capsys.readouterr().out
    alone = run_study(replace(page.load(), seeds=(3,)), tmp_path / "alone")["rows"][1]
    losses = [run["curves"][-1]["validation_loss"] for run in (alone["runs"][0], row["runs"][1])]
    assert losses[0] == losses[1]
    page.write("seeds = [0]\n" + TRIED)  # would lose a seed
    assert "+ wider, seed 3" in failed(capsys, *page.command(out=tmp_path / "new"))
    with pytest.raises(InputError, match=r"seeds = .*each of them once"):
        page.write("seeds = [0, 0]\n" + TRIED).load()


def test_every_row_is_swept_then_tested_with_each_seed(page, capsys):
    assert "test accuracy (standard deviation" in done(capsys, *page.write(SWEPT).command())
    summary = json.loads(page.results.read_text())
    assert page.told() == FOUR
    for row in summary["rows"]:
        accuracies = {one["rate"]: one["validation_accuracy"] for one in row["rates"]}
        assert accuracies[row["chosen"]] == max(accuracies.values())
        assert row["config"]["train"]["learning_rate"] == row["chosen"]
        assert row["test_images"] == 360
        reached = [run["test_accuracy"] for run in row["runs"]]
        assert row["test_accuracy_mean"] == pytest.approx(sum(reached) / 2)
        assert [run["seed"] for run in row["runs"]] == [0, 1]
    tested = list(page.out.rglob("result.json"))
    assert len(tested) == 4 * 2, "only the chosen rates were tested"
    before = {path: path.stat().st_mtime_ns for path in tested}
    page.results.unlink()
    assert main(page.command()) == 0, "it goes on, and finds everything done"
    assert json.loads(page.results.read_text()) == summary
    assert before == {path: path.stat().st_mtime_ns for path in page.out.rglob("result.json")}


def test_runs_trained_at_once_are_those_trained_one_after_the_other(page):
    whole, said = run_study(page.write(SWEPT).load(), page.out), []
    place = study_runs.Place(say=said.append, at_once=3)
    at_once = run_study(page.load(), page.out.with_name("at-once"), place)

    def numbers(summary):
        return [
            (
                [run["test_accuracy"] for run in row["runs"]],
                [(one["rate"], one["validation_accuracy"]) for one in row["rates"]],
            )
            for row in summary["rows"]
        ]

    assert numbers(at_once) == numbers(whole)
    ended = [sentence.endswith("has ended.") for sentence in said]
    assert sum(ended) == 4 * (2 + 1), "two rates, and a second seed at the better one"
    found = [sentence for sentence in said if sentence.endswith("is finished.")]
    assert len(found) == 4 * (2 + 2), "the table finds each of them, and the chosen rate twice"


def test_what_is_wrong_in_one_of_several_processes_is_told(page):
    folder = page.write(TRIED).out / page.load().variants()[0].recipe.name
    folder.mkdir(parents=True)
    (folder / "seed-0").write_text("no folder", encoding="utf-8")
    with pytest.raises(InputError, match="seed-0"):
        run_study(page.load(), page.out, study_runs.Place(at_once=2))


def test_after_an_error_in_another_process_no_run_begins(page):
    variants = page.write(SWEPT).load().variants()
    folder = page.out / variants[0].recipe.name / rate_folder(variants[0].rates[0])
    folder.mkdir(parents=True)
    (folder / "seed-0").write_text("no folder", encoding="utf-8")
    with pytest.raises(InputError, match="seed-0"):
        train_at_once(variants, page.out, 1)
    for worker in multiprocessing.active_children():
        worker.join(60)
    assert [path.is_dir() for path in page.out.rglob("seed-*")] == [False]


def test_windows_trains_as_many_at_once_as_it_can(tmp_path, monkeypatch):
    monkeypatch.setattr(sys, "platform", "win32")  # where a pool refuses more than 61
    train_at_once([], tmp_path, 99)


@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGKILL])
def test_no_training_outlives_its_command(page, how):
    page.write(SWEPT, ("epochs = 1", "epochs = 100000"))
    command = [sys.executable, "-m", "vit_lab", *page.command(), "--at-once", "2"]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL) as process:
        deadline = time.monotonic() + 120
        while len(list(page.out.rglob("metrics.jsonl"))) < 2:
            assert process.poll() is None
            assert time.monotonic() < deadline
            time.sleep(0.1)
        workers = psutil.Process(process.pid).children(recursive=True)
        process.send_signal(how)
    gone, alive = psutil.wait_procs(workers, timeout=30)
    for worker in alive:
        worker.kill()
    assert (len(gone) >= 2, alive) == (True, [])


def test_fewer_than_one_at_once_are_refused(page, capsys):
    said = failed(capsys, *page.write(TRIED).command(), "--at-once", "0")
    assert "--at-once = 0: expected 1 or more" in said


@pytest.mark.parametrize("setting", ["data.train_size=20", "model.dim=8", "train.learning_rate=0.1"])
def test_a_setting_that_tasks_rows_or_rates_decide_is_not_passed_over_in_silence(page, setting, capsys):
    said = failed(capsys, *page.write(SWEPT).command(), "--set", setting)
    name, value = setting.split("=")
    assert f"--set {name} = {value}: expected a setting that the study leaves to --set; change" in said


def test_a_setting_that_a_first_row_hands_down_is_not_passed_over_in_silence(page, capsys):
    page.write(TRIED, ('[rows."as it is"]', '[rows."as it is".train]\nbatch_size = 50'))
    said = failed(capsys, *page.command(), "--set", "train.batch_size=20")
    assert "--set train.batch_size = 20: expected a setting that the study leaves to --set" in said


def test_a_setting_that_some_rows_decide_can_be_set_for_the_others(page):
    assert main([*page.write(TRIED).command(), "--set", "model.dim=4"]) == 0
    assert [row["config"]["model"]["dim"] for row in json.loads(page.results.read_text())["rows"]] == [
        4,
        16,
        16,
    ]


def test_a_study_without_test_never_touches_the_test_images(page, monkeypatch):
    batches = ImageData.batches

    def guarded(self, part, *arguments, **options):
        assert part == "validation"
        return batches(self, part, *arguments, **options)

    monkeypatch.setattr(ImageData, "batches", guarded)
    run_study(page.write(TRIED).load(), page.out)


def test_rows_without_held_out_images_are_refused(page):
    page.write(TRIED, ("validation_size = 100", "validation_size = 0"))
    with pytest.raises(InputError, match=r"row 'as it is': no images held out"):
        run_study(page.load(), page.out)


def test_a_row_that_cannot_be_built_is_refused_before_any_is_run(page):
    page.write(TRIED, ("dim = 16", "dim = 16\npatch_size = 3"))
    with pytest.raises(InputError, match=r"row '\+ wider': patch_size 3 does not divide"):
        run_study(page.load(), page.out)
    assert not list(page.out.rglob("seed-*"))


def test_rows_are_compared_with_the_first_seed_by_seed(page, capsys):
    page.write(TRIED, ("cumulative = true", "cumulative = true\nseeds = [0, 1]"))
    out = done(capsys, *page.command())
    first, second, _ = json.loads(page.results.read_text())["rows"]
    gaps = [
        100 * (one["validation_accuracy"] - other["validation_accuracy"])
        for one, other in zip(second["runs"], first["runs"], strict=True)
    ]
    mean, half = sum(gaps) / 2, 12.7062 * abs(gaps[0] - gaps[1]) / 2  # t for one degree of freedom
    low, high = mean - half, mean + half
    assert f"{mean:+.1f} points, 95 % interval {low:+.1f} to {high:+.1f}: + wider over as it is\n" in out


def test_rows_of_a_recipe_without_labels_are_refused(page):
    page.write(
        'claim = "?"\ncommand = "?"\nbase = "tiny-imagenet-masked-patches"\n[rows."a".train]\nseed = 0\n'
    )
    with pytest.raises(InputError, match=r"row 'a' has objective = .*: expected 'classes'"):
        run_study(page.load(), page.out)


def test_each_row_is_written_down_as_it_ends_and_none_is_lost_again(page):
    def stop(row):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run_study(page.write(SWEPT).load(), page.out, report=stop)
    assert page.told() == FOUR[:1]
    whole = run_study(page.load(), page.out)
    assert page.told() == FOUR
    page.write(SWEPT, ("[tasks.few]", "[tasks.least]\ndata = { train_size = 20 }\n[tasks.few]"))
    with pytest.raises(KeyboardInterrupt):
        run_study(page.load(), page.out, report=stop)
    assert page.told() == [("least", "from scratch"), *FOUR], "those of before stay"
    assert json.loads((page.out / "summary.json").read_text())["rows"][1:] == whole["rows"]


def test_a_seed_that_diverges_at_the_chosen_rate_is_left_out_openly(page, capsys, monkeypatch):
    trains = study_runs.run

    def diverges(recipe, folder, *arguments, **options):
        if recipe.train.seed == 1 and "more-same" in str(folder):
            raise DivergedError("the loss is nan at step 3")
        return trains(recipe, folder, *arguments, **options)

    monkeypatch.setattr(study_runs, "run", diverges)
    page.write(SWEPT, ("seeds = [0, 1]", "seeds = [0, 1, 2]"))
    said = done(capsys, *page.command())
    assert "seed 1: the loss is nan at step 3" in said
    assert said.count("diverged, and left out: seed 1") == 1
    *others, last = json.loads(page.results.read_text())["rows"]
    assert not any("diverged" in row for row in others)
    assert (last["task"], last["name"], last["diverged"]) == ("more", "same", [1])
    assert [run["seed"] for run in last["runs"]] == [0, 2]
    reached = [run["test_accuracy"] for run in last["runs"]]
    assert last["test_accuracy_mean"] == pytest.approx(sum(reached) / 2)
    before = page.results.read_text()
    assert main(page.command()) == 0
    assert page.results.read_text() == before, "a diverged seed is told of, too"
    with pytest.raises(InputError, match=r"more, same, seed 1 would be lost"):
        check_summary(page.results, page.write(SWEPT, ("seeds = [0, 1]", "seeds = [0, 2]")).load())


def test_the_baselines_vote_is_one_of_all_distances(digits):
    some = {"train_images": digits.train_images[:50], "train_labels": digits.train_labels[:50]}
    data = replace(digits, **some)  # and 237 held out, which vote, too
    labels = torch.cat([data.train_labels, data.validation_labels])
    voters = torch.cat([data.train_images, data.validation_images]).flatten(1).double()
    distances = torch.cdist(data.test_images.flatten(1).double(), voters)  # (360, 287)
    for voting in (1, 3):
        near = labels[distances.argsort(dim=1)[:, :voting]]
        winners = torch.nn.functional.one_hot(near, 10).sum(dim=1).argmax(dim=1)  # the lower, if as many
        expected = (winners == data.test_labels).double().mean().item()
        found = study_runs.nearest_neighbour_accuracy(data, voting)
        assert found == pytest.approx(expected, abs=1.5 / 360)  # two neighbours may be equally far


def test_seeds_that_all_diverge_leave_no_summary(page, monkeypatch):
    def diverges(recipe, *arguments):
        raise DivergedError("the loss is nan at step 3")

    monkeypatch.setattr(study_runs, "run", diverges)
    recipe = page.write(SWEPT).load().variants()[0].recipe
    with pytest.raises(DivergedError):
        study_runs.run_seeds(recipe, page.out)
    assert not page.out.exists()


def test_rows_that_a_results_file_tells_of_are_taken_over_on_another_machine(page, tmp_path, capsys):
    command = page.write(SWEPT).command("--add-to-results")
    assert main(command) == 0
    whole = json.loads(page.results.read_text())
    first, _, third, *_ = whole["rows"]
    diverged = {"runs": first["runs"][1:], "diverged": [first["runs"][0]["seed"]]}  # a first seed can, too
    part = whole | {"rows": [first | diverged, third | {"runs": third["runs"][:1]}], "claim": "As before."}
    page.results.write_text(json.dumps(part))
    out = done(capsys, *page.command("--add-to-results", out=tmp_path / "there"))
    assert out.count("taken over") == 1, "the row with a seed missing is run again"
    made = {path.name for path in (tmp_path / "there").iterdir() if path.is_dir()}
    assert made == {"few-same", "more-from-scratch", "more-same"}
    again = json.loads(page.results.read_text())
    assert again["claim"] == "As before.", "made before the first run"
    assert again["rows"][0]["diverged"] == [0]
    for one, other in zip(again["rows"][1:], whole["rows"][1:], strict=True):
        assert one["test_accuracy_mean"] == other["test_accuracy_mean"]


def test_rows_that_were_swept_over_fewer_rates_are_not_taken_over(page, tmp_path, capsys):
    assert main(page.write(SWEPT).command("--add-to-results")) == 0
    text = page.path.read_text().replace("rates = [0.1, 0.01]", "rates = [0.1, 0.01, 0.03]")
    page.path.write_text(text.replace("rates = [0.003, 0.001]", "rates = [0.003, 0.001, 0.01]"))
    out = done(capsys, *page.command("--add-to-results", out=tmp_path / "more"))
    assert "taken over" not in out
    swept = [[rate["rate"] for rate in row["rates"]] for row in json.loads(page.results.read_text())["rows"]]
    assert swept == [[0.003, 0.001, 0.01], [0.1, 0.01, 0.03]] * 2
    page.path.write_text(page.path.read_text().replace("[0.1, 0.01, 0.03]", "[0.01, 0.03, 0.1]"))
    out = done(capsys, *page.command("--add-to-results", out=tmp_path / "again"))
    assert out.count("taken over") == 4, "in whichever order"


def test_a_summary_of_other_rows_is_never_replaced(page, tmp_path, capsys):
    assert main(page.write(TRIED).command()) == 0
    before = page.results.read_text()
    page.write(TRIED + "[rows.more.model]\ndim = 4\n")
    assert main(page.command()) == 0, "a row more loses nothing"
    more = page.results.read_text()
    assert len(json.loads(more)["rows"]) == 4
    assert "tells of other runs (more, seed 0 would be lost)" in failed(capsys, *page.write(TRIED).command())
    assert page.results.read_text() == more
    page.results.write_text(before)
    said = failed(capsys, *page.write(TRIED, ("dim = 16", "dim = 32")).command(out=tmp_path / "new"))
    assert "model.dim (16 there, 32 now)" in said
    assert not (tmp_path / "new").exists()


def test_a_summary_is_not_replaced_by_one_of_other_tasks_rates_or_settings(page):
    run_study(page.write(SWEPT, ("[tasks.more]\ndata = { train_size = 80 }\n", "")).load(), page.out)
    for change, message in (
        (("epochs = 1", "epochs = 2"), r"train.epochs \(1 there, 2 now\)"),
        (("[tasks.few]", "[tasks.others]"), r"few, from scratch, seed 0.*would be lost"),
        (("rates = [0.003, 0.001]", "rates = [0.003, 0.01]"), r"few, from scratch, rate 0.001 would be lost"),
    ):
        with pytest.raises(InputError, match=message):
            check_summary(page.out / "summary.json", page.write(SWEPT, change).load())


def test_a_damaged_summary_is_one_clear_error(page):
    whole = run_study(page.write(TRIED).load(), page.out)
    written = json.dumps(whole)
    damages = [{"rows": 5}, {"rows": [{"name": "as it is"}]}, {"rows": [{"runs": [], "config": {}}]}]
    damaged = [json.dumps(whole | damage) for damage in damages]
    damaged += [written.replace(f'"{key}"', '"other"') for key in ("commit", "date")]
    damaged += [written.replace('"validation_accuracy": 0.', f'"validation_accuracy": 1{"0" * 400}, "x": 0.')]
    for text in damaged:
        (page.out / "summary.json").write_text(text)
        with pytest.raises(InputError, match=r"summary\.json is not a summary of runs"):
            run_study(page.load(), page.out)


def test_with_patience_a_row_is_worth_the_epoch_that_it_keeps(page):
    patient = ("epochs = 1", "epochs = 30\npatience = 1\nwarmup_steps = 0\nlearning_rate = 0.3")
    page.write(TRIED, patient, ("learning_rate = 0.01", "learning_rate = 0.5"))
    summary = run_study(page.load(), page.out)
    for row in summary["rows"]:
        (run,) = row["runs"]
        losses = [epoch["validation_loss"] for epoch in run["curves"]]
        best = losses.index(min(losses))
        assert best < len(losses) - 1, "it ran on for an epoch"
        assert row["validation_accuracy_mean"] == run["curves"][best]["validation_accuracy"]


@pytest.mark.parametrize("units", ["0", "1"])
def test_bfloat16_becomes_float32_where_a_processor_imitates_it(page, capsys, monkeypatch, units):
    monkeypatch.setenv("VIT_BFLOAT16_UNITS", units)
    page.write(TRIED, ("epochs = 1", 'epochs = 1\nprecision = "bfloat16"'))
    assert main(page.command()) == 0
    assert capsys.readouterr().err.count("no units for bfloat16") == 1 - int(units)
    found = {row["config"]["train"]["precision"] for row in json.loads(page.results.read_text())["rows"]}
    assert found == {"bfloat16" if units == "1" else "float32"}


NAMED = 'train = { optimiser = "adamw", precision = "bfloat16" }'


@pytest.mark.parametrize(
    "changes",
    [
        [
            (f"[tasks.{name}]", f'[tasks.{name}]\ntrain = {{ precision = "bfloat16" }}')
            for name in ("few", "more")
        ],
        [('train = { optimiser = "adamw" }', NAMED), ("[rows.same]", f"[rows.same]\n{NAMED}")],
        [('train = { optimiser = "adamw" }', NAMED), ("epochs = 1", 'epochs = 1\nprecision = "bfloat16"')],
    ],
    ids=["tasks", "rows", "a row and the study"],
)
def test_bfloat16_becomes_float32_in_rows_and_tasks_that_name_it(page, capsys, monkeypatch, changes):
    monkeypatch.setenv("VIT_BFLOAT16_UNITS", "0")
    page.write(SWEPT, ("seeds = [0, 1]", "seeds = [0]"), *changes)
    assert {one.train.precision for one in page.load().recipes().values()} == {"bfloat16"}
    assert main(page.command()) == 0
    assert capsys.readouterr().err.count("so the run is in float32") == 1
    found = [row["config"]["train"]["precision"] for row in json.loads(page.results.read_text())["rows"]]
    assert found == ["float32"] * 4


@pytest.mark.parametrize("units", ["0", "1"])
def test_rows_that_differ_in_precision_are_left_alone(page, capsys, monkeypatch, units):
    monkeypatch.setenv("VIT_BFLOAT16_UNITS", units)
    page.write(SWEPT, ("seeds = [0, 1]", "seeds = [0]"), ('train = { optimiser = "adamw" }', NAMED))
    assert main(page.command()) == 0
    said = capsys.readouterr().err
    assert "so the run is in float32" not in said
    assert said.count("rows of the study differ in train.precision, so each stays in its own") == 1 - int(
        units
    )
    found = [row["config"]["train"]["precision"] for row in json.loads(page.results.read_text())["rows"]]
    assert found == ["bfloat16", "float32"] * 2


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("claim = ", "is not TOML"),
        ('claim = "x"\ncommand = ""\nbase = "digits"\nrows = {}', "rows = {}: expected at least one"),
        ('clam = "x"', "unknown option of the file 'clam'"),
        ('claim = "x"\ncommand = ""\nrows = {a = 5}', r"rows\.a = 5: expected a table of"),
        (
            SWEPT.replace("rates = [0.003, 0.001]", "rates = [0.003]"),
            r"rows.from scratch.rates = .*2 rates, as",
        ),
        (SWEPT.replace("rates = [0.1, 0.01]", ""), r"rows.from scratch.rates = .*expected 0 rates"),
        *(
            (SWEPT.replace("rates = [0.003, 0.001]", f"rates = {rates}"), rf"scratch\.rates = .*{message}")
            for rates, message in (
                ("[0.01, -1]", "numbers above 0"),
                ('[0.01, "x"]', "numbers above 0"),
                ("[0.01, 0.01]", "each of them once"),
                ("[0.01, 0.01000000001]", "to six digits"),
            )
        ),
        (SWEPT.replace("rates = [0.1, 0.01]", "rates = [0.1, 0.1]"), "^rates = .*each of them once"),
        (SWEPT.replace("[tasks.few]\ndata", "[tasks.few]\ndatta"), "unknown option of the file 'datta'"),
        (SWEPT.partition("[rows")[0], "the file has no 'rows'"),
        (TRIED + "[rows.wrong]\ntrain = 5\n", r"train = 5: expected a table"),
    ],
)
def test_a_study_that_is_wrong_is_one_clear_error(page, text, message):
    page.path.write_text(text)
    with pytest.raises(InputError, match=message):
        page.load().variants()


@pytest.mark.parametrize(
    ("names", "message"),
    [
        ([".."], r"row '\.\.' cannot name a folder: expected letters"),
        (["summary.json"], "cannot name a folder"),
        (["x" * 201], "cannot name a folder: expected .* 200 at most"),
        (["As IT - is"], "rows 'as it is' and 'As IT - is' would share the folder 'as-it-is'"),
    ],
)
def test_names_that_cannot_be_folders_are_refused_before_anything_is_trained(page, names, message):
    page.write(TRIED + "".join(f'[rows."{name}"]\n' for name in names))
    with pytest.raises(InputError, match=message):
        page.load()


def test_rows_of_two_tasks_that_would_share_a_folder_are_refused(page):
    renamed = (
        ("[tasks.few]", "[tasks.a]"),
        ("[tasks.more]", '[tasks."a from"]'),
        ("[rows.same]", "[rows.scratch]"),
    )
    page.write(SWEPT, *renamed)
    with pytest.raises(InputError, match="rows 'a, from scratch' and 'a from, scratch' would share"):
        page.load()


@pytest.mark.parametrize("command", ["study", "train --recipe"])
def test_a_file_without_a_name_is_refused(tmp_path, capsys, command):
    (tmp_path / "...toml").write_text(TRIED if command == "study" else '[data]\nname = "digits"\n')
    said = failed(capsys, *command.split(), "...toml")
    assert "the file's name = '..': expected one with letters or digits" in said
    assert os.listdir(tmp_path) == ["...toml"]


def test_a_runs_folder_does_not_become_one_over_runs(page, capsys):
    run_study(page.write(TRIED).load(), page.out)
    run = page.out / "as-it-is" / "seed-0"
    before = sorted(os.listdir(run))
    assert f"{run} is the folder of a run: expected" in failed(capsys, *page.command(out=run))
    assert sorted(os.listdir(run)) == before


@pytest.mark.parametrize("name", study_names())
def test_studies_that_ship_can_be_read(name):
    study = load_study(name)
    assert f"vit study {name} " in study.command
    assert study.variants()


def test_depth_is_held_against_width_at_equal_cost():
    recipes = load_study("depth_width").recipes().values()
    configs = [ViTConfig.from_dict({"image_size": 32, "num_classes": 10, **r.model}) for r in recipes]
    costs = [forward_flops(config) for config in configs]
    assert len({config.depth for config in configs}) == 5
    assert max(costs) / min(costs) < 1.015
    with FlopCounterMode(display=False) as counter:  # the widest, by torch
        VisionTransformer(configs[0]).to("meta")(torch.zeros(1, 3, 32, 32, device="meta"))
    assert counter.get_total_flops() == costs[0]
    assert all(not r.train.curriculum for r in recipes)  # smaller images would cost less


def small_recipe(study, name, **cut):
    (row,) = miniature(study, {name: 0.01}, **cut).variants()
    return row.recipe


@pytest.mark.parametrize("name", [name for name in study_names() if not load_study(name).cumulative])
def test_a_miniature_warms_up_for_as_large_a_share_of_its_steps(name):
    study = load_study(name)
    whole = {row.name: row.recipe for row in reversed(study.variants())}
    for row in study.rows:
        small, train = small_recipe(study, row), whole[row].train
        known = {"cifar10": 50_000, "digits": 1_437, "tiny-imagenet": 100_000, "imagenette": 9_469}
        held = [known[one.data.name] - one.data.validation_size for one in (whole[row], small)]
        photos = [one.data.train_size or rest for one, rest in zip((whole[row], small), held, strict=True)]
        counts = [
            one.steps or one.epochs * (number // min(one.batch_size, number))
            for one, number in zip((train, small.train), photos, strict=True)
        ]
        assert small.train.warmup_steps == pytest.approx(train.warmup_steps * counts[1] / counts[0], abs=1)
        factors = [schedule_factor(step, counts[1], small.train.warmup_steps) for step in range(counts[1])]
        assert max(factors) == 1, "the rate that was handed in is reached"


def test_a_miniature_of_counted_steps_has_no_more_passes_than_asked_for(page):
    page.write(SWEPT, ("epochs = 1", "steps = 1000\nwarmup_steps = 100"), ("train_size = 40", ""))
    train = small_recipe(page.load(), "same", images=400, epochs=2).train
    assert (train.steps, train.epochs, train.warmup_steps) == (0, 2, 4)
    train = small_recipe(page.load(), "same", images=400, epochs=0).train
    assert (train.steps, train.warmup_steps) == (1000, 100)
    train = small_recipe(page.load(), "same", images=400, epochs=100).train
    assert (train.steps, train.warmup_steps) == (1000, 100), "these are fewer"


def test_a_miniature_has_no_more_images_than_the_data_set(page):
    study = page.write(SWEPT, ("train_size = 40", "")).load()
    for images, kept in ((2000, None), (1200, None), (1195, None), (1190, 1190)):
        recipe = small_recipe(study, "same", images=images)
        assert recipe.data.train_size == kept
        assert study_runs.open_dataset(recipe.data).training_size == (kept or 1200)


def test_a_miniature_of_photos_that_nobody_has_counted_says_what_to_do(page, tmp_path):
    page.write(SWEPT, ("train_size = 40", ""), ('"digits"', f'"folder:{tmp_path}"'))
    with pytest.raises(InputError, match=r"without data.train_size: expected .*Set data.train_size"):
        small_recipe(page.load(), "same")
    assert small_recipe(page.load(), "same", images=0, epochs=0).data.train_size is None
    page.write(SWEPT, ('"digits"', f'"folder:{tmp_path}"'))
    assert small_recipe(page.load(), "same", images=30).data.train_size == 30
