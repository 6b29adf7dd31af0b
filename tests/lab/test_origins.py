"""What results and summaries say of where their runs were made, also when it changes on the way."""

import json

import pytest
import stopping
from study_pages import SWEPT, TRIED

from vit_from_scratch import InputError
from vit_from_scratch.data import open_dataset
from vit_lab import run, run_seeds, run_study
from vit_lab.runs.run_folder import RunFolder


def recipe(*seeds: int):
    return stopping.recipe(*seeds, epochs=2)


@pytest.fixture
def at(monkeypatch):
    """A function that lets this be the checkout of another commit."""

    def commit(name: str | None) -> None:
        monkeypatch.setattr("vit_lab.runs.environment.commit", lambda: name)

    commit("first")
    return commit


@pytest.fixture
def stopped(tmp_path, monkeypatch):
    """A folder with a run that was stopped after the first of its two epochs."""

    def begun(seed: int = 0):
        with monkeypatch.context() as patch:
            stopping.stop_once_saved(patch)
            with pytest.raises(KeyboardInterrupt):
                run(recipe(seed).with_seed(seed), tmp_path / "run")
        return tmp_path / "run"

    return begun


def test_a_run_of_one_process_says_once_where_it_was_made(tmp_path, at):
    result = run(recipe(0), tmp_path / "run")
    assert result["commit"] == "first"
    assert not {"origins", "measured_by"} & result.keys()
    at("second")
    assert run(recipe(0), tmp_path / "run") == result, "it is finished"


def test_a_run_that_goes_on_elsewhere_says_who_trained_which_epochs(tmp_path, at, stopped):
    folder = stopped(1)
    at("second")
    result = run(recipe(1).with_seed(1), folder)
    parts = [(part["from_epoch"], part["commit"]) for part in result["origins"]]
    assert parts == [(1, "first"), (2, "second")]
    assert result["commit"] == "second"
    assert "measured_by" not in result
    at("third")
    (tmp_path / "all").mkdir()
    folder.rename(tmp_path / "all" / "seed-1")
    summary = run_seeds(recipe(0, 1, 2), tmp_path / "all")
    assert [run.get("commit", "as above") for run in summary["runs"]] == ["as above", "second", "as above"]
    assert [run.get("origins") for run in summary["runs"]] == [None, result["origins"], None]
    assert summary["commit"] == "third"


def test_a_process_that_ended_before_its_first_epoch_left_nothing(at, stopped, monkeypatch):
    def stop(self, state):
        raise KeyboardInterrupt

    folder = stopped()
    at("lost")
    with monkeypatch.context() as patch:
        patch.setattr(RunFolder, "on_epoch", stop)
        with pytest.raises(KeyboardInterrupt):
            run(recipe(0), folder)
    at("first")
    result = run(recipe(0), folder)
    assert result["commit"] == "first"
    assert not {"origins", "measured_by"} & result.keys()


def test_a_run_that_is_tested_elsewhere_is_not_taken_for_one_trained_there(tmp_path, at):
    folder, data = tmp_path / "run", open_dataset(recipe(0).data)
    run(recipe(0), folder, opened=data, test=False)
    at("second")
    result = run(recipe(0), folder)
    assert (result["commit"], result["measured_by"]["commit"]) == ("first", "second")
    assert "origins" not in result


@pytest.mark.parametrize("damage", ["{", "[]", "{}", '{"origins": [{}]}', '{"origins": 5}'])
def test_a_damaged_note_is_one_clear_error(stopped, damage):
    folder = stopped()
    (folder / "origins.json").write_text(damage)
    with pytest.raises(InputError, match=r"origins\.json cannot be read: expected a record.*Restore the"):
        run(recipe(0), folder)
    assert (folder / "origins.json").read_text() == damage


def test_a_run_outside_a_checkout_is_not_given_the_commit_of_another(tmp_path, at):
    at(None)
    run_seeds(recipe(0), tmp_path)
    at("second")
    summary = run_seeds(recipe(0, 1), tmp_path)
    assert summary["commit"] == "second"
    assert [run.get("commit", "as above") for run in summary["runs"]] == [None, "as above"]


def test_rows_that_were_trained_before_keep_their_origin(page, at):
    run_study(page.write(TRIED).load(), page.out)
    at("second")
    page.write(TRIED + "[rows.more.model]\ndim = 4\n")
    summary = run_study(page.load(), page.out)
    *before, more = summary["rows"]
    assert summary["commit"] == "second"
    assert [row["commit"] for row in before] == ["first"] * 3
    assert "commit" not in more
    assert not any("hardware" in row for row in before), "that is the same"
    assert not any("origins" in row for row in before)
    written = json.loads((page.out / "summary.json").read_text())
    at("third")
    run_study(page.load(), page.out)
    assert json.loads((page.out / "summary.json").read_text()) == written, "nothing was trained"


def test_each_row_rate_and_run_of_a_swept_study_keeps_its_origin(page, at):
    one_seed, one_task = ("seeds = [0, 1]", "seeds = [0]"), ("[tasks.more]\ndata = { train_size = 80 }\n", "")
    run_study(page.write(SWEPT, one_seed, one_task).load(), page.out)
    at("second")
    summary = run_study(page.write(SWEPT, one_seed).load(), page.out)
    assert summary["commit"] == "second"
    before = summary["rows"][:2]
    assert [row["commit"] for row in before] == ["first"] * 2
    assert not any("commit" in row for row in summary["rows"][2:])
    assert not any("commit" in part for row in before for part in (*row["rates"], *row["runs"])), "as the row"
    at("third")
    summary = run_study(page.write(SWEPT).load(), page.out)
    assert summary["commit"] == "third"
    for row, commit in zip(summary["rows"], ["first", "first", "second", "second"], strict=True):
        assert "commit" not in row
        assert [rate["commit"] for rate in row["rates"]] == [commit] * 2
        assert [run.get("commit", "as above") for run in row["runs"]] == [commit, "as above"]
        assert "hardware" not in row["runs"][0], "that is the same"
