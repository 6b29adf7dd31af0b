import json

import pytest

from vit_from_scratch import InputError
from vit_from_scratch.cli import main
from vit_from_scratch.training.trials import load_trials, run_trials, slug

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
        assert trial["curves"][-1]["validation_accuracy"] == trial["validation_accuracy"]
    assert {"hardware", "versions", "commit", "date"} <= summary.keys()
    again = run_trials(load_trials(str(page)), folder)
    assert again["trials"] == summary["trials"]


def test_trials_never_touch_the_test_set(page, tmp_path, monkeypatch):
    from vit_from_scratch.training.data import ImageData

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
        ("claim = ", "are not TOML"),
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


def test_a_page_in_another_encoding_is_one_clear_error(page):
    page.write_bytes(b"claim = '\xff'")
    with pytest.raises(InputError, match=r"are not TOML: 'utf-8' codec"):
        load_trials(str(page))


def test_with_patience_a_trial_is_worth_the_epoch_that_it_keeps(page, tmp_path):
    page.write_text(PAGE.replace("epochs = 1", "epochs = 30\npatience = 1\nlearning_rate = 0.3\nthreads = 2"))
    summary = run_trials(load_trials(str(page)), tmp_path / "out")
    assert summary["hardware"]["threads"] == 2
    for trial in summary["trials"]:
        losses = [epoch["validation_loss"] for epoch in trial["curves"]]
        best = losses.index(min(losses))
        assert best < len(losses) - 1, "it ran on for an epoch"
        assert trial["validation_accuracy"] == trial["curves"][best]["validation_accuracy"]


def test_a_page_that_is_not_there_is_refused():
    with pytest.raises(InputError, match=r"no trials 'nowhere': expected the name of a page"):
        load_trials("nowhere")


def test_a_trials_name_becomes_a_folder():
    assert slug("+ flip, shift") == "flip-shift"
