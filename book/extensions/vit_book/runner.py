"""Chapters that the cache lacks run side by side, as many at a time as there are cores.

myst-nb runs a chapter when Sphinx reads its page, so one after the other. Here all of them run as soon as it
is known which pages will be read, and myst-nb then finds their outputs in the cache. A chapter has one
thread, alone or beside others: models of the book's size gain nothing from a second, and sums round alike.
The full budget is for a GPU, which chapters do not share: there they run one after the other, on every core.
"""

import asyncio
import math
import os
import time
from collections.abc import Coroutine, Iterable
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, TypeVar

from joblib import cpu_count
from jupyter_cache import get_cache
from jupyter_cache.base import CacheBundleIn, JupyterCacheAbstract
from myst_nb.core.config import NbParserConfig
from myst_nb.core.execute import create_client
from myst_nb.core.execute.cache import NotebookClientCache
from myst_nb.core.read import create_nb_reader
from myst_nb.sphinx_ import SphinxEnvType
from nbclient import NotebookClient
from nbformat import NotebookNode
from project_facts import measured_chapters
from sphinx.application import Sphinx
from sphinx.errors import SphinxError
from sphinx.util import logging

EXTENSIONS = str(Path(__file__).resolve().parents[1])  # where kernels find `kernel_figures`
T = TypeVar("T")
LOGGER = logging.getLogger(__name__)


class ChapterError(SphinxError):
    """Chapters with a cell that failed; the message holds the name and the traceback of each."""

    category = "A chapter failed"


@dataclass
class Chapter:
    """A page with code cells whose outputs are not in the cache, as myst-nb reads it."""

    path: Path
    notebook: NotebookNode

    @property
    def name(self) -> str:
        """As in the file of measured minutes."""
        return self.path.stem


def lacking(env: SphinxEnvType, docnames: Iterable[str], cache: JupyterCacheAbstract) -> list[Chapter]:
    """Find the pages that myst-nb would run, by the same rules: text alone may change without a run."""
    chapters, config = [], env.mystnb_config
    for docname in docnames:
        path = str(env.doc2path(docname))
        text = Path(path).read_text(encoding="utf-8")
        reader = create_nb_reader(path, env.myst_config, config, text)
        if reader is None:
            continue  # a page without cells
        notebook = reader.read(text)
        if not isinstance(create_client(notebook, path, config, LOGGER), NotebookClientCache):
            continue  # the configuration excludes it
        try:
            cache.match_cache_notebook(notebook)
        except KeyError:
            chapters.append(Chapter(Path(path), notebook))
    return chapters


def longest_first(chapters: Iterable[Chapter]) -> list[Chapter]:
    """Begin with those that took longest when last measured, so that none runs on alone at the end."""
    measured, never = measured_chapters(), {"seconds": math.inf}
    seconds = {name: record.get("cpu", never)["seconds"] for name, record in measured.items()}
    return sorted(chapters, key=lambda one: seconds.get(one.name, math.inf), reverse=True)


def surroundings() -> tuple[int, dict[str, str]]:
    """Say how many chapters run at a time, and with which environment variables."""
    found = os.pathsep.join(filter(None, [EXTENSIONS, os.environ.get("PYTHONPATH")]))
    environment = {**os.environ, "PYTHONPATH": found}
    if os.environ["VIT_BUDGET"] == "full":
        return 1, environment
    return cpu_count(), {**environment, "OMP_NUM_THREADS": "1"}


async def run(chapter: Chapter, config: NbParserConfig, environment: dict[str, str]) -> None:
    """Run the cells in a kernel of their own; the notebook then holds their outputs."""
    with TemporaryDirectory() if config.execution_in_temp else nullcontext(chapter.path.parent) as folder:
        client = NotebookClient(
            chapter.notebook,
            timeout=config.execution_timeout,
            allow_errors=config.execution_allow_errors,
            resources={"metadata": {"path": str(folder)}},
            record_timing=False,  # times would become part of what the cache recognises a chapter by
            shutdown_kernel="immediate",  # all outputs have come, and torch takes seconds to leave
            # a warning on every start says that nothing is encrypted; figures are drawn for phones, too
            extra_arguments=["--log-level=ERROR", "--InteractiveShellApp.extra_extensions=kernel_figures"],
        )
        try:
            await client.async_execute(env=environment)
            join_pieces(chapter.notebook)
        finally:
            if client.km is not None and client.km.has_kernel:  # Ctrl-C came while it was starting
                await client.km.shutdown_kernel(now=True)


def join_pieces(notebook: NotebookNode) -> None:
    """Join what a cell printed in pieces, as a busy kernel sends it: myst-nb gives each a line of its own."""
    for cell in notebook.cells:
        outputs: list[NotebookNode] = []
        for output in cell.get("outputs", []):
            before = outputs[-1] if outputs else {}
            if output["output_type"] == "stream" and before.get("name") == output["name"]:
                before["text"] += output["text"]
            else:
                outputs.append(output)
        if outputs:
            cell["outputs"] = outputs


async def run_all(
    chapters: Iterable[Chapter], config: NbParserConfig, cache: JupyterCacheAbstract
) -> dict[Path, Exception]:
    """Run chapters in their order, each into the cache as it ends; return the error of each that failed."""
    failed: dict[Path, Exception] = {}
    at_once, environment = surroundings()
    free = asyncio.Semaphore(at_once)

    async def run_one(chapter: Chapter) -> None:
        async with free:
            start, verdict = time.perf_counter(), ""
            try:
                await run(chapter, config, environment)
                times = {"execution_seconds": time.perf_counter() - start}
                bundle = CacheBundleIn(chapter.notebook, str(chapter.path), data=times)
                cache.cache_notebook_bundle(bundle, check_validity=False, overwrite=True)
            except Exception as error:
                if asyncio.current_task().cancelling():
                    raise asyncio.CancelledError from None  # Ctrl-C, which nbclient reports as a dead kernel
                failed[chapter.path], verdict = error, "failed after "
            LOGGER.info("  %s: %s%.0f s", chapter.name, verdict, time.perf_counter() - start)

    async with asyncio.TaskGroup() as group:  # which waits for all of them, after Ctrl-C, too
        for chapter in chapters:
            group.create_task(run_one(chapter))
    return failed


class Loop(asyncio.SelectorEventLoop):
    """Leaves Ctrl-C to asyncio: of several clients, each would put its own handler in the other's place."""

    def add_signal_handler(self, *_: object) -> None:
        """Refuse, as where there are no signals; clients then do without."""
        raise NotImplementedError


def complete(work: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine to its end; after Ctrl-C, to the end of all that it started."""
    with asyncio.Runner(loop_factory=Loop) as runner:
        return runner.run(work)


def fill_cache(_app: Sphinx, env: SphinxEnvType, docnames: list[str]) -> None:
    """Run the chapters among the pages that will be read, and bring their outputs into the cache."""
    cache = get_cache(env.mystnb_config.execution_cache_path)
    chapters = longest_first(lacking(env, docnames, cache))
    if not chapters:
        return
    LOGGER.info("chapters to run: %d, at a time: %d", len(chapters), surroundings()[0])
    if failed := complete(run_all(chapters, env.mystnb_config, cache)):
        raise ChapterError("\n\n".join(f"{path}\n{error}" for path, error in sorted(failed.items())))


def setup(app: Sphinx) -> None:
    """Fill the cache when the pages to read are known and none has been read."""
    app.connect("env-before-read-docs", fill_cache)
