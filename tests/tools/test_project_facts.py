"""The line about time at the head of a chapter says what was measured, and what was not."""

import json
import re

import numpy as np
import project_facts
import pytest
from measure_chapters import LIMIT
from project_facts import (
    BLOCK,
    FOLD,
    LINES_A_MINUTE,
    PRINTED_A_MINUTE,
    ROOT,
    SOLUTION,
    WORDS_A_MINUTE,
    chapters,
    full_budget_text,
    minutes_file,
    minutes_text,
    reading_minutes,
    time_text,
    writing_minutes,
)
from scipy.optimize import nnls

from vit_lab.experiments.recipes import load_result


@pytest.fixture
def measured(tmp_path):
    def write(**seconds):
        path = minutes_file(tmp_path)
        path.parent.mkdir(parents=True, exist_ok=True)
        records = {device: {"seconds": value} for device, value in seconds.items()}
        path.write_text(json.dumps({"chapters": {"03_attention": records}}), encoding="utf-8")
        return minutes_text("03_attention", tmp_path)

    return write


def test_minutes_are_rounded_up_to_a_tenth(measured):
    assert measured(cpu=19.0) == "about 0.4 minutes on two CPU cores"
    assert measured(cpu=2.0, gpu=60.0) == "about 0.1 minutes on two CPU cores, about 1 minute on a GPU"
    assert measured(cpu=61.0).startswith("about 1.1 minutes")


def test_without_a_measurement_it_says_so(tmp_path):
    assert minutes_text("03_attention", tmp_path) == "for a time not yet measured"


def test_the_full_budget_has_run_on_a_gpu_only_where_a_record_says_so(tmp_path):
    path = minutes_file(tmp_path)
    path.parent.mkdir(parents=True)
    run = {"seconds": 126.0, "budget": "full", "gpu": "NVIDIA T4", "date": "2026-12-01"}
    records = {"cpu": {"seconds": 9.0}, "gpu": {**run, "budget": "quick"}, "cpu-full": {"seconds": 300.0}}
    for chapter, record in {"03_attention": records, "04_encoder": {**records, "gpu-full": run}}.items():
        path.write_text(json.dumps({"chapters": {chapter: record}}), encoding="utf-8")
        said = full_budget_text(chapter, tmp_path)
        if chapter == "04_encoder":
            assert said == "Run with the full budget on a GPU (NVIDIA T4, 2026-12-01) in about 2.1 minutes."
        else:
            assert said == "Not yet run with the full budget on a GPU."
    assert full_budget_text("05_vision_transformer", tmp_path).startswith("Not yet")


def test_every_chapter_is_measured_and_none_takes_longer_than_allowed():
    records = json.loads(minutes_file().read_text(encoding="utf-8"))["chapters"]
    assert set(records) == {path.stem for path in chapters(ROOT)}
    for name, devices in records.items():
        assert devices["cpu"]["budget"] == "quick"
        assert devices["cpu"]["seconds"] <= LIMIT, f"{name} takes {devices['cpu']['seconds']} seconds"


def test_the_times_in_words_hold_for_what_was_measured():
    landing, readme = ((ROOT / name).read_text(encoding="utf-8") for name in ("book/index.md", "README.md"))
    assert "no chapter takes longer than a minute." in " ".join(landing.split())
    recorded = json.loads(minutes_file().read_text(encoding="utf-8"))["chapters"]
    assert max(recorded[chapter.stem]["cpu"]["seconds"] for chapter in chapters(ROOT)) <= 60
    assert "in under a minute on a CPU" in readme
    assert load_result("digits")["seconds_max"] < 60
    assert "trains for about two hours" in readme
    assert 100 <= load_result("imagenette-plain")["seconds_max"] / 60 <= 140


# Words, lines of code and printed lines of nine chapters as they stood before November 2026, counted by
# `open_text` (their classes stood open) and by running them, and the minutes that a newcomer took for each.
READ = [
    (1538, 73, 29, 30),
    (1319, 85, 24, 35),
    (1831, 144, 62, 60),
    (1626, 179, 35, 45),
    (1072, 135, 75, 35),
    (1016, 124, 32, 45),
    (2558, 261, 49, 75),
    (2417, 192, 73, 70),
    (2020, 170, 46, 60),
]


def test_the_rates_are_fitted_to_what_a_newcomer_took():
    counted, took = np.array(READ, dtype=float)[:, :3], np.array(READ, dtype=float)[:, 3]
    fitted = 1 / nnls(counted, took)[0]
    assert fitted == pytest.approx((WORDS_A_MINUTE, LINES_A_MINUTE, PRINTED_A_MINUTE), rel=0.01)


def test_reading_takes_its_words_its_code_and_what_it_prints(tmp_path, monkeypatch):
    (tmp_path / "notebooks").mkdir()
    monkeypatch.setattr(project_facts, "WORDS_A_MINUTE", 100)
    monkeypatch.setattr(project_facts, "LINES_A_MINUTE", 12)
    monkeypatch.setattr(project_facts, "PRINTED_A_MINUTE", 10)
    minutes_file(tmp_path).parent.mkdir(parents=True)
    record = {"cpu": {"seconds": 1.0, "printed_lines": 30}}
    minutes_file(tmp_path).write_text(json.dumps({"chapters": {"99_page": record}}))
    words, code = "word " * 195, "x = 1\n\n" * 24
    cell = f"```{{code-cell}} ipython3\n---\nmystnb:\n  image: {{}}\n---\n{code}```\n"
    folded = f"```{{code-cell}} ipython3\n:tags: [hide-input]\n\n{code}```\n"
    fold = f":::{{admonition}} For the careful reader\n:class: note dropdown\n{words}\n:::\n"
    page = f"---\nkernelspec: {words}\n---\n\n# 99. A chapter\n\n{words}\n{cell}\n{folded}\n{fold}"
    (tmp_path / "notebooks/99_page.md").write_text(f"{page}\n## Exercises\n\n{words}")
    assert reading_minutes("99_page", tmp_path) == 7  # 200 words, 24 lines, 30 lines printed


def test_writing_takes_what_the_boxes_say(tmp_path):
    (tmp_path / "notebooks").mkdir()
    boxes = [f":::{{admonition}} Your turn: `f` · about {words}\n:::" for words in ("1 minute", "10 minutes")]
    page = tmp_path / "notebooks/99_page.md"
    page.write_text("\n\n".join(["# 99. A chapter", *boxes]))
    assert time_text("99_page", tmp_path).startswith("0 minutes to read and 11 to write; it runs ")
    page.write_text("# 99. A chapter\n\n```{exercise} One\n```\n\n```{exercise} Two\n```")
    assert time_text("99_page", tmp_path).startswith("0 minutes to read, 2 exercises on top; it runs ")
    page.write_text("# 99. A chapter")
    assert time_text("99_page", tmp_path).startswith("0 minutes to read; it runs ")


CODE = re.compile(r"^```\{code-cell\}.*?^```$", BLOCK)
HINT = re.compile(r"^:::\{admonition\} (?:Hint|A second hint)\n.*?^:::$", BLOCK)
OBJECTIVES = re.compile(r"^:::\{admonition\} [^\n]*\n:class: objectives$.*?^:::$", BLOCK)
PRACTICE = re.compile(r"^## (?:Three questions|Exercises|Further reading)$.*?(?=^## |\Z)", BLOCK)
ASIDE = re.compile(r"^(:{3,})\{(?:margin|widget|admonition\} Your turn).*?^\1$", BLOCK)
DRAWN = re.compile(r"^```(?:\{drawing\}|bash|python).*?^```$", BLOCK)
FORMULA = re.compile(r"^\$\$$.*?^\$\$.*?$", BLOCK)
HEAD_LINE = re.compile(r"^\*\*Needs\*\*.*?\n\n", BLOCK)


def words(text, *without):
    """How many words of a chapter are left without these."""
    prose = text.partition("\n# ")[2]
    for kind in (SOLUTION, CODE, *without):
        prose = kind.sub("", prose)
    return len(re.sub(r" :: .*$", "", prose, flags=re.MULTILINE).split())  # reasons in a quiz are folded


def open_words(text):
    """How many words one reads who opens no fold, up to the questions."""
    return words(text, FOLD, OBJECTIVES, PRACTICE)


def argument_words(text):
    """How many of the open words lead from the question to its answer, without tasks, asides and formulas."""
    return words(text, FOLD, OBJECTIVES, PRACTICE, ASIDE, DRAWN, FORMULA, HEAD_LINE)


@pytest.mark.parametrize("chapter", chapters(), ids=lambda path: path.stem)
def test_a_chapter_is_short_enough_to_be_read_to_its_end(chapter):
    text = chapter.read_text(encoding="utf-8")
    assert 1_000 < words(text, HINT) <= 3_500
    assert open_words(text) <= 1_700
    assert 500 < argument_words(text) <= 1_400
    assert reading_minutes(chapter.stem) <= 35
    assert writing_minutes(chapter.stem) <= 25


def test_only_what_stands_open_counts():
    fold = ":::{{admonition}} {}\n:class: {}\n{}\n:::\n\n"
    closed = fold.format("For the careful reader", "dropdown", "f") + fold.format("Hint", "tip dropdown", "f")
    cell = "```{code-cell} ipython3\nx = 1\n```\n\n"
    nested = "::::{admonition} Both\n:class: deviation dropdown\n:::{margin} M\nm\n:::\nm\n::::\n\n"
    end = "## Exercises\n\nno\n\n## Where\n\nthree"
    text = f"---\nhead\n---\n\n# 99. Title\n\none two\n\n{closed}{nested}{cell}{end}"
    assert open_words(text) == 7  # 99. Title one two ## Where three
    aside = "\n\n" + fold.format("Your turn: `f`", "your-turn", "four") + "$$\nx\n$$ (eq-x)\n"
    assert open_words(text + aside) == 19
    assert argument_words(text + aside) == 7
