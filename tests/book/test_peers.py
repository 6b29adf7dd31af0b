"""The page about speed: its tables say what the benchmark's file says, and no number on it is typed."""

import copy
import re

import pytest
from project_facts import ROOT
from vit_book import peers

from vit_lab import load_result

PAGE = (ROOT / "book" / "speed.md").read_text(encoding="utf-8")
MODES = tuple(peers.AIMS)


@pytest.fixture(scope="module")
def result():
    """What the benchmark wrote."""
    return load_result(peers.RESULT)


def rows(lines):
    """The cells of each row of a table."""
    found = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines if line.startswith("|")]
    return found[2:]


def test_no_number_on_the_page_is_typed():
    without_code = re.sub(r"`[^`]*`", "", PAGE)
    without_names = without_code.replace("bfloat16", "").replace("Ti/16", "")
    assert re.findall(r".*\d.*", without_names) == []


def test_the_page_shows_every_part():
    assert re.findall(r"^```\{peers\} (.+)$", PAGE, flags=re.MULTILINE) == list(peers.PARTS)


@pytest.mark.parametrize("mode", MODES)
def test_every_cell_that_was_to_be_measured_has_a_row(mode, result):
    wanted = {
        (f"{size} {images}", dtype)
        for size in ("Ti", "S", "B")
        for images in ("32/4", "64/8", "224/16", "384/16")
        for dtype in ("float32", "bfloat16")
    }
    assert {tuple(row[:2]) for row in rows(peers.speeds(result, mode))} == wanted


@pytest.mark.parametrize("mode", MODES)
def test_the_file_holds_together(mode, result):
    """The ratios and the fastest peer follow from the times of the rounds."""
    for cell in peers.cells_of(result, mode).values():
        times = {name: model["seconds"] for name, model in cell["models"].items()}
        medians = {name: sorted(found)[len(found) // 2] for name, found in times.items()}
        fastest = min((name for name in times if name not in (peers.OURS, peers.UNKEPT)), key=medians.get)
        assert cell["fastest_peer"] == fastest
        ratios = sorted(b / a for a, b in zip(times[peers.OURS], times[fastest], strict=True))
        assert peers.beside(cell) == pytest.approx(ratios[len(ratios) // 2])


@pytest.mark.parametrize("mode", MODES)
def test_a_row_says_what_the_file_says(mode, result):
    changed = copy.deepcopy(result)
    cell = changed["cells"][f"{mode} S 224/16 float32"]
    ours, fastest = (cell["models"][name] for name in (peers.OURS, cell["fastest_peer"]))
    ours |= {"to_fastest_peer": 7.77, "quartiles": [6.66, 8.88], "share_of_peak": 0.55}
    ours["memory_mib"] = 4.44 * fastest["memory_mib"]
    before, after = (rows(peers.speeds(version, mode)) for version in (result, changed))
    (place,) = [number for number, pair in enumerate(zip(before, after, strict=True)) if pair[0] != pair[1]]
    row = after[place]
    assert row[:4] == ["S 224/16", "float32", "7.77", "6.66 to 8.88"]
    assert row[-2:] == ["4.44", cell["fastest_peer"]]
    assert int(row[-3].rstrip("%")) == pytest.approx(
        55 * cell["peak_gflops"] / peers.peaks(result)["float32"], abs=1
    )


def test_the_verdict_counts_the_cells(result):
    slow = copy.deepcopy(result)
    for name, cell in slow["cells"].items():
        fast = name.endswith("B 384/16 float32")
        cell["models"][peers.OURS] |= {
            "to_fastest_peer": 1.1 if fast else 0.9,
            "quartiles": [0.8, 1.2 if fast else 0.95],
        }
    for mode in MODES:
        (said,) = peers.verdict(slow, mode)
        assert "is reached in 1 of 24; the median of all is 0.90. In 0 cells ours is the faster" in said
        assert "in 23 the fastest peer." in said
    assert len(rows(peers.missed(slow))) == 46


def test_beside_each_peer_stands_the_median_of_its_cells(result):
    changed = copy.deepcopy(result)
    for name, cell in changed["cells"].items():
        own = peers.UNKEPT if name.startswith("training") else peers.OURS
        cell["models"]["timm"]["seconds"] = [3.21 * seconds for seconds in cell["models"][own]["seconds"]]
    assert [row[0] for row in rows(peers.each(changed))] == [
        "timm",
        "torchvision",
        "transformers",
        "vit-pytorch",
    ]
    assert rows(peers.each(changed))[0][1:] == ["3.21"] * 4
    assert rows(peers.each(changed))[1:] == rows(peers.each(result))[1:]


def test_it_says_how_many_cells_are_slower_in_an_imitated_type_and_how_many_came_later(result):
    changed = copy.deepcopy(result)
    for number, (name, cell) in enumerate(changed["cells"].items()):
        cell["commit"] = "b" if number < 5 else "a"
        cell["peak_gflops"] = 1.0 if name.endswith("bfloat16") else 2.0
        slow = name.endswith("bfloat16") and "Ti" in name
        cell["models"][peers.OURS]["images_per_second"] = 1.0 if slow else 2.0
    (said,) = peers.machine(changed)
    assert "slower in it than in float32 in 8 of 24 cells." in said
    assert said.endswith("5 cells were measured again.")
    for cell in changed["cells"].values():
        cell |= {"commit": "a", "peak_gflops": 1.0}
    (said,) = peers.machine(changed)
    assert "imitates" not in said
    assert "again" not in said


def test_the_page_says_both_medians_of_the_run_in_the_browser():
    result = load_result("page_model_cpu")
    (line,) = peers.in_the_page(result)
    for name in ("ours", "theirs"):
        assert f" {result['milliseconds'][name]['median']:.0f} ms" in line
    assert result["browser"] in line


def test_a_row_that_missed_its_aim_says_where_its_time_goes(result):
    slow = copy.deepcopy(result)
    for cell in slow["cells"].values():
        cell["models"][peers.OURS]["to_fastest_peer"] = 2
    cell = next(iter(slow["cells"].values()))
    cell["models"][peers.OURS]["to_fastest_peer"] = 0.5
    cell["profile"] = {
        **{"matrix products": 0.5, "products of attention": 0.05, "softmax": 0.1, "copies and casts": 0.04},
        **{"norms": 0.03, "GELU": 0.02, "sums and additions": 0.01, "optimiser": 0.2, "other": 0.05},
    }
    (row,) = rows(peers.missed(slow))
    assert row[4:] == ["50", "15", "4", "6", "20", "5"]


def test_the_start_is_a_median_with_its_ends():
    assert rows(peers.start_up({"start_up": {"a": [3.0, 1.0, 2.2]}})) == [["a", "2.2", "1.0 to 3.0"]]
