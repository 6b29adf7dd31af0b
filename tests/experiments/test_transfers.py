"""`vit transfer`: pages that compare what a model may begin from."""

import json

import pytest

from vit_from_scratch import InputError
from vit_from_scratch.cli import main
from vit_from_scratch.experiments.summaries import check_summary
from vit_from_scratch.experiments.transfers import load_transfers, transfer_names

PAGE = """
claim = "A start helps."
command = "vit transfer page"
seeds = [0, 1]
rates = [0.1, 0.01]
[data]
name = "digits"
[train]
epochs = 1
batch_size = 20
threads = 1
optimiser = "sgd"
[tasks.few]
data = { train_size = 40 }
[tasks.more]
data = { train_size = 80 }
[starts."from scratch"]
model = { patch_size = 4, dim = 16, depth = 1, heads = 2, mlp_dim = 16 }
rates = [0.003, 0.001]
train = { optimiser = "adamw" }
[starts.same]
model = { patch_size = 4, dim = 16, depth = 1, heads = 2, mlp_dim = 16 }
"""


@pytest.fixture
def page(tmp_path):
    path = tmp_path / "page.toml"
    path.write_text(PAGE)
    return path


def test_a_pair_is_the_page_with_its_task_and_its_start_laid_over(page):
    pairs = load_transfers(str(page)).pairs()
    assert list(pairs) == [(t, s) for t in ("few", "more") for s in ("from scratch", "same")]
    few, other = pairs["few", "from scratch"], pairs["more", "same"]
    assert (few.data.train_size, few.train.optimiser, few.train.learning_rate) == (40, "adamw", 0.003)
    assert (other.data.train_size, other.train.optimiser, other.train.learning_rate) == (80, "sgd", 0.1)
    assert few.name == "few-from-scratch"


def test_every_pair_is_swept_then_tested_with_each_seed(page, tmp_path, capsys):
    out, results = tmp_path / "out", tmp_path / "results.json"
    command = ["transfer", str(page), "--out", str(out), "--results", str(results)]
    assert main(command) == 0
    assert "test accuracy (standard deviation" in capsys.readouterr().out
    summary = json.loads(results.read_text())
    assert [(pair["task"], pair["start"]) for pair in summary["pairs"]] == list(
        load_transfers(str(page)).pairs()
    )
    for pair in summary["pairs"]:
        accuracies = {row["rate"]: row["validation_accuracy"] for row in pair["rates"]}
        assert accuracies[pair["chosen"]] == max(accuracies.values())
        assert pair["config"]["train"]["learning_rate"] == pair["chosen"]
        reached = [run["test_accuracy"] for run in pair["runs"]]
        assert pair["test_accuracy_mean"] == pytest.approx(sum(reached) / 2)
        assert [run["seed"] for run in pair["runs"]] == [0, 1]
    tested = list(out.rglob("result.json"))
    assert len(tested) == 4 * 2, "only the chosen rates were tested"
    before = {path: path.stat().st_mtime_ns for path in tested}
    results.unlink()
    assert main(command) == 0, "it goes on, and finds everything done"
    assert json.loads(results.read_text()) == summary
    assert before == {path: path.stat().st_mtime_ns for path in out.rglob("result.json")}


def test_a_summary_of_other_transfers_is_not_replaced(page, tmp_path):
    assert main(["transfer", str(page), "--out", str(tmp_path / "out")]) == 0
    page.write_text(PAGE.replace("epochs = 1", "epochs = 2"))
    with pytest.raises(InputError, match=r"train.epochs \(1 there, 2 now\)"):
        check_summary(tmp_path / "out" / "summary.json", load_transfers(str(page)))
    page.write_text(PAGE.replace("[tasks.more]", "[tasks.others]"))
    with pytest.raises(InputError, match=r"more, from scratch, seed 0.*would be lost"):
        check_summary(tmp_path / "out" / "summary.json", load_transfers(str(page)))


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        (
            "rates = [0.003, 0.001]",
            "rates = [0.003]",
            r"starts.from scratch.rates = .*expected 2 rates, as for",
        ),
        ("rates = [0.1, 0.01]", "rates = []", r"rates = .*expected at least one"),
        ("[tasks.few]\ndata", "[tasks.few]\ndatta", "unknown option of the file 'datta'"),
        ('command = "vit transfer page"', "", "the file has no 'command'"),
    ],
)
def test_wrong_pages_are_refused(page, old, new, message):
    page.write_text(PAGE.replace(old, new))
    with pytest.raises(InputError, match=message):
        load_transfers(str(page)).pairs()


def test_an_unknown_page_is_refused():
    with pytest.raises(InputError, match="unknown page of transfers 'nothing'"):
        load_transfers("nothing")


@pytest.mark.parametrize("name", transfer_names())
def test_pages_that_ship_can_be_read(name):
    page = load_transfers(name)
    assert f"vit transfer {name} " in page.command
    assert page.pairs()
