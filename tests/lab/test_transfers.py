"""`vit transfer`: pages that compare what a model may begin from."""

import json

import pytest

from vit_from_scratch import InputError
from vit_from_scratch.errors import DivergedError
from vit_lab.cli import main
from vit_lab.experiments import seed_runs
from vit_lab.experiments.summaries import check_summary
from vit_lab.experiments.transfer_runs import run_transfers
from vit_lab.experiments.transfers import load_transfers, transfer_names

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


def told(out) -> list[tuple[str, str]]:
    summary = json.loads((out / "summary.json").read_text())
    return [(pair["task"], pair["start"]) for pair in summary["pairs"]]


def test_each_pair_is_written_down_as_it_ends_and_none_is_lost_again(page, tmp_path):
    def stop(pair):
        raise KeyboardInterrupt

    out, pairs = tmp_path / "out", list(load_transfers(str(page)).pairs())
    with pytest.raises(KeyboardInterrupt):
        run_transfers(load_transfers(str(page)), out, report=stop)
    assert told(out) == pairs[:1]
    run_transfers(load_transfers(str(page)), out)
    assert told(out) == pairs
    whole = json.loads((out / "summary.json").read_text())
    page.write_text(PAGE.replace("[tasks.few]", "[tasks.least]\ndata = { train_size = 20 }\n[tasks.few]"))
    with pytest.raises(KeyboardInterrupt):
        run_transfers(load_transfers(str(page)), out, report=stop)
    assert told(out) == [("least", "from scratch"), *pairs], "those of before stay"
    assert json.loads((out / "summary.json").read_text())["pairs"][1:] == whole["pairs"]


def test_a_seed_that_diverges_at_the_chosen_rate_is_left_out_openly(page, tmp_path, capsys, monkeypatch):
    trains = seed_runs.run

    def diverges(recipe, folder, *arguments):
        if recipe.train.seed == 1 and "more-same" in str(folder):
            raise DivergedError("the loss is nan at step 3")
        return trains(recipe, folder, *arguments)

    monkeypatch.setattr(seed_runs, "run", diverges)
    page.write_text(PAGE.replace("seeds = [0, 1]", "seeds = [0, 1, 2]"))
    out, results = tmp_path / "out", tmp_path / "results.json"
    command = ["transfer", str(page), "--out", str(out), "--results", str(results)]
    assert main(command) == 0
    said = capsys.readouterr().out
    assert "seed 1: the loss is nan at step 3" in said
    assert said.count("diverged, and left out: seed 1") == 1
    *others, last = json.loads(results.read_text())["pairs"]
    assert [pair["diverged"] for pair in others] == [[], [], []]
    assert (last["task"], last["start"], last["diverged"]) == ("more", "same", [1])
    assert [run["seed"] for run in last["runs"]] == [0, 2]
    reached = [run["test_accuracy"] for run in last["runs"]]
    assert last["test_accuracy_mean"] == pytest.approx(sum(reached) / 2)
    before = results.read_text()
    assert main(command) == 0
    assert results.read_text() == before, "a diverged seed is told of, too"
    page.write_text(PAGE.replace("seeds = [0, 1]", "seeds = [0, 2]"))
    with pytest.raises(InputError, match=r"more, same, seed 1 would be lost"):
        check_summary(results, load_transfers(str(page)))


def test_seeds_that_all_diverge_leave_no_summary(page, tmp_path, monkeypatch):
    def diverges(recipe, *arguments):
        raise DivergedError("the loss is nan at step 3")

    monkeypatch.setattr(seed_runs, "run", diverges)
    recipe = next(iter(load_transfers(str(page)).pairs().values()))
    for past in (False, True):
        with pytest.raises(DivergedError):
            seed_runs.run_seeds(recipe, tmp_path / "out", past_divergence=past)
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("tasks", "message"),
    [
        (["??"], r"task '\?\?' cannot name a folder: expected letters"),
        (["few", "Few!"], r"tasks 'few' and 'Few!' would share the folder 'few'"),
        (["x" * 199], r"pair 'x+, from scratch' cannot name a folder: expected .* 200 at most"),
        (["a", "a from"], r"pairs 'a, from scratch' and 'a from, scratch' would share the folder"),
    ],
)
def test_names_that_are_no_folders_of_their_own_are_refused(page, tasks, message):
    table = "\n".join(f'[tasks."{task}"]\ndata = {{ train_size = 40 }}' for task in tasks)
    text = PAGE.replace("[tasks.few]\ndata = { train_size = 40 }", table)
    page.write_text(text.replace("[starts.same]", "[starts.scratch]"))
    with pytest.raises(InputError, match=message):
        load_transfers(str(page))


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


def test_pairs_that_a_results_file_tells_of_are_taken_over_on_another_machine(page, tmp_path, capsys):
    results = tmp_path / "results.json"
    command = ["transfer", str(page), "--results", str(results), "--add-to-results", "--out"]
    assert main([*command, str(tmp_path / "here")]) == 0
    whole = json.loads(results.read_text())
    first, _, third, *_ = whole["pairs"]
    diverged = {"runs": first["runs"][1:], "diverged": [first["runs"][0]["seed"]]}  # a first seed can, too
    part = whole | {"pairs": [first | diverged, third | {"runs": third["runs"][:1]}]}
    results.write_text(json.dumps(part))
    capsys.readouterr()
    assert main([*command, str(tmp_path / "there")]) == 0
    assert capsys.readouterr().out.count("taken over") == 1, "the pair with a seed missing is run again"
    made = {path.name for path in (tmp_path / "there").iterdir() if path.is_dir()}
    assert made == {"few-same", "more-from-scratch", "more-same"}
    again = json.loads(results.read_text())
    assert again["pairs"][0] == part["pairs"][0]
    for one, other in zip(again["pairs"], whole["pairs"], strict=True):
        assert one["test_accuracy_mean"] == other["test_accuracy_mean"]


@pytest.mark.parametrize("command", [["transfer", "PAGE"], ["train", "--data", "digits", "--epochs", "1"]])
def test_adding_to_results_wants_a_file(command, page, tmp_path, capsys):
    words = [str(page) if word == "PAGE" else word for word in command]
    assert main([*words, "--add-to-results", "--out", str(tmp_path / "out")]) == 2
    assert "--add-to-results without a file: expected --results FILE, too." in capsys.readouterr().err
    assert not (tmp_path / "out").exists()
