"""Chapters that the cache lacks run side by side, once each, and myst-nb finds their outputs there."""

import asyncio
import os
import signal
from pathlib import Path
from types import SimpleNamespace

import pytest
from jupyter_cache import get_cache
from myst_nb.core.config import NbParserConfig
from myst_parser.config.main import MdParserConfig
from sphinx.application import Sphinx
from sphinx.util.docutils import docutils_namespace
from vit_book import runner

HEAD = """---
file_format: mystnb
kernelspec:
  display_name: Python 3
  name: python3
---

# A chapter

{text}

"""
CELL = """```{{code-cell}} ipython3
{code}
```
"""


def write(folder, name, *cells, text="Words."):
    """Write a chapter of so many cells, and return its path."""
    path = folder / f"{name}.md"
    body = "\n".join(CELL.format(code=code) for code in cells)
    path.write_text(HEAD.format(text=text) + body, encoding="utf-8")
    return path


@pytest.fixture
def env(tmp_path):
    """What Sphinx knows when it has found the pages of a folder and read none."""
    config = NbParserConfig(execution_mode="cache", execution_cache_path=str(tmp_path / "cache"))
    return SimpleNamespace(
        doc2path=lambda name: str(tmp_path / f"{name}.md"), myst_config=MdParserConfig(), mystnb_config=config
    )


@pytest.fixture
def cache(env):
    return get_cache(env.mystnb_config.execution_cache_path)


def names(chapters):
    return [chapter.name for chapter in chapters]


def run_instead(monkeypatch, pretended):
    """Put a coroutine function in the place of the one that starts a kernel."""
    monkeypatch.setattr(runner, "run", pretended)


async def do_nothing(chapter, config, environment):
    pass


def run_all(chapters, env, cache):
    return runner.complete(runner.run_all(chapters, env.mystnb_config, cache))


def test_only_pages_with_cells_that_the_cache_lacks_are_run(tmp_path, env, cache, monkeypatch):
    monkeypatch.setenv("VIT_BUDGET", "quick")
    run_instead(monkeypatch, do_nothing)
    (tmp_path / "prose.md").write_text("# No cells\n", encoding="utf-8")
    write(tmp_path, "kept", "1 + 1")
    write(tmp_path, "changed", "2 + 2")
    pages = ["prose", "kept", "changed"]
    missing = runner.lacking(env, pages, cache)
    assert names(missing) == ["kept", "changed"]
    assert run_all(missing, env, cache) == {}
    assert runner.lacking(env, pages, cache) == []

    write(tmp_path, "kept", "1 + 1", text="Other words around the same cell.")
    write(tmp_path, "changed", "2 + 3")
    assert names(runner.lacking(env, pages, cache)) == ["changed"]


@pytest.mark.parametrize(("cores", "budget", "expected"), [(1, "quick", 1), (3, "quick", 3), (3, "full", 1)])
def test_as_many_run_at_a_time_as_there_are_cores(tmp_path, env, cache, monkeypatch, cores, budget, expected):
    monkeypatch.setattr(runner, "cpu_count", lambda: cores)
    monkeypatch.setenv("VIT_BUDGET", budget)
    running, most = 0, 0

    async def count(chapter, config, environment):
        nonlocal running, most
        running += 1
        most = max(most, running)
        await asyncio.sleep(0.001)
        running -= 1

    run_instead(monkeypatch, count)
    pages = [write(tmp_path, f"{number:02}_page", str(number)).stem for number in range(5)]
    run_all(runner.lacking(env, pages, cache), env, cache)
    assert most == expected


def test_the_quick_budget_gives_each_one_thread_and_the_full_one_what_there_is(monkeypatch):
    monkeypatch.setenv("OMP_NUM_THREADS", "8")
    monkeypatch.setenv("VIT_BUDGET", "quick")
    monkeypatch.setenv("PYTHONPATH", "mine")
    found = os.pathsep.join([runner.EXTENSIONS, "mine"])  # with what draws figures for phones
    assert runner.surroundings()[1] == {**os.environ, "PYTHONPATH": found, "OMP_NUM_THREADS": "1"}
    monkeypatch.setenv("VIT_BUDGET", "full")
    assert runner.surroundings()[1] == {**os.environ, "PYTHONPATH": found}


def test_the_longest_begins_and_one_never_measured_before_it(monkeypatch):
    minutes = {
        "short": {"cpu": {"seconds": 5}},
        "long": {"cpu": {"seconds": 50}},
        "gpu": {"gpu": {"seconds": 1}},
    }
    monkeypatch.setattr(runner, "measured_chapters", lambda: minutes)
    chapters = [runner.Chapter(Path(f"{name}.md"), None) for name in ("short", "gpu", "long")]
    assert names(runner.longest_first(chapters)) == ["gpu", "long", "short"]


def test_a_chapter_that_fails_leaves_the_others_in_the_cache(tmp_path, env, cache, monkeypatch):
    monkeypatch.setenv("VIT_BUDGET", "quick")

    async def fail_some(chapter, config, environment):
        if chapter.name == "bad":
            raise RuntimeError("the kernel died")

    run_instead(monkeypatch, fail_some)
    for name in ("bad", "good"):
        write(tmp_path, name, f"'{name}'")
    with pytest.raises(runner.ChapterError, match=r"bad\.md\nthe kernel died"):
        runner.fill_cache(None, env, ["bad", "good"])
    assert names(runner.lacking(env, ["bad", "good"], cache)) == ["bad"]


@pytest.fixture
def interruptible():
    """Ctrl-C interrupts, also where this runs in the background of a shell, which switches it off."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("interruptible")
def test_ctrl_c_waits_for_what_it_ends_and_begins_nothing_more(tmp_path, env, cache, monkeypatch):
    monkeypatch.setattr(runner, "cpu_count", lambda: 2)
    monkeypatch.setenv("VIT_BUDGET", "quick")
    begun, ended = [], []

    async def last_for_ever(chapter, config, environment):
        begun.append(chapter.name)
        if len(begun) == 2:
            os.kill(os.getpid(), signal.SIGINT)
        try:
            await asyncio.Event().wait()
        finally:
            await asyncio.sleep(0.01)  # as a kernel takes a moment to end
            ended.append(chapter.name)

    run_instead(monkeypatch, last_for_ever)
    pages = [write(tmp_path, f"{number:02}_page", str(number)).stem for number in range(4)]
    with pytest.raises(KeyboardInterrupt):
        run_all(runner.lacking(env, pages, cache), env, cache)
    assert begun == ["00_page", "01_page"]
    assert sorted(ended) == begun


@pytest.fixture
def book(tmp_path, monkeypatch):
    """A function that builds a book of one page, in which a cell notes each of its runs in a file."""
    monkeypatch.setattr(os, "environ", os.environ.copy())  # the extension sets what kernels inherit
    runs = tmp_path / "runs.txt"
    cells = [
        "import os, pathlib",
        f"with open({str(runs)!r}, 'a') as file:\n    file.write('run ')",
        "print('threads', end=' ', flush=True)\nprint(os.environ['OMP_NUM_THREADS'], 'files', os.listdir())",
    ]
    (tmp_path / "conf.py").write_text(
        "extensions = ['myst_nb', 'vit_book.execution', 'vit_book.runner']\n"
        "nb_execution_mode = 'cache'\nnb_execution_in_temp = True\n",
        encoding="utf-8",
    )

    def build(text, *more):
        write(tmp_path, "index", *cells, *more, text=text)
        pages = tmp_path / "_build" / "html"
        with docutils_namespace():
            Sphinx(tmp_path, tmp_path, pages, tmp_path / "_build" / "trees", "html", status=None).build()
        return (pages / "index.html").read_text(encoding="utf-8"), runs.read_text()

    return build


def test_myst_nb_finds_the_outputs_and_runs_nothing_again(book):
    page, runs = book("Some words.")
    assert "threads 1 files []" in page
    assert runs == "run "
    page, runs = book("Other words.")
    assert "Other words." in page
    assert "threads 1 files []" in page
    assert runs == "run "
