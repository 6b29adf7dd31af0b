"""The runs of a study at the same time, a process each: a small model leaves most of a machine idle.

Two cores train two such models as fast as one, and a GPU a dozen under NVIDIA's MPS.
"""

import contextlib
import functools
import multiprocessing
import os
import sys
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from pathlib import Path
from threading import Thread

import torch

from vit_from_scratch.data.datasets import open_dataset
from vit_from_scratch.errors import DivergedError
from vit_lab.experiments.recipes import Recipe
from vit_lab.experiments.records import Rate, best_rate, rate_folder
from vit_lab.experiments.study import Variant
from vit_lab.runs.allocator import keeping_freed_memory
from vit_lab.runs.run import run


def train_at_once(
    variants: Sequence[Variant],
    out_dir: Path,
    count: int,
    data_dir: str | os.PathLike[str] | None = None,
    device: str = "cpu",
    say: Callable[[str], None] = lambda sentence: None,
) -> None:
    """Train the runs of a study's rows in folders where `run_study` then finds them finished.

    Rates come first; as soon as all of a row are there, its other seeds follow at the best. What diverges
    leaves no finished run; `run_study` comes to it again and reports it.

    Args:
        variants: the rows.
        out_dir: the folder over theirs.
        count: how many processes.
        data_dir, device, say: as in `Place`.

    Raises:
        InputError: as in `run`, in whichever process; runs that have begun go on to their end, no more begin.
    """
    if sys.platform == "win32":
        count = min(count, 61)  # a pool takes no more there
    spawn, threads = multiprocessing.get_context("spawn"), max(1, torch.get_num_threads() // count)
    waiting: deque[tuple[Variant, Recipe]] = deque()
    running: dict[Future[Rate], Variant] = {}  # as many as processes: a pool begins all that it holds
    tried: dict[str, list[Rate]] = {}
    for variant in variants:
        first, *_ = seeds = variant.recipe.seeds
        rates = [(variant.recipe.with_rate(rate), first) for rate in variant.rates]
        for recipe, seed in rates or [(variant.recipe, seed) for seed in seeds]:
            waiting.append((variant, recipe.with_seed(seed)))
    with ProcessPoolExecutor(count, spawn, _begin, (threads,)) as pool:
        while waiting or running:
            while waiting and len(running) < count:
                variant, recipe = waiting.popleft()
                rate = rate_folder(recipe.train.learning_rate) if variant.rates else ""
                folder = out_dir / variant.recipe.name / rate / f"seed-{recipe.train.seed}"
                running[pool.submit(_trained, recipe, folder, data_dir, device)] = variant
            for future in wait(running, return_when=FIRST_COMPLETED).done:
                variant, found = running.pop(future), future.result()
                say(f"{variant.label}: a run at rate {found.rate:g} has ended.")
                known = tried.setdefault(variant.label, [])
                known.append(found)
                converged = any(rate.validation_accuracy is not None for rate in known)
                if len(known) == len(variant.rates) and converged:
                    recipe = variant.recipe.with_rate(best_rate(known))
                    waiting.extend((variant, recipe.with_seed(seed)) for seed in recipe.seeds[1:])


_kept_memory = contextlib.ExitStack()
"""Of a process that trains: open until it ends."""


def _begin(threads: int) -> None:
    """Let a process have its part of the cores, draw no bar over those of others, and end with its parent."""
    Thread(target=_end_with_parent, daemon=True).start()
    torch.set_num_threads(threads)
    _kept_memory.enter_context(keeping_freed_memory())
    os.environ["VIT_PROGRESS"] = "0"


def _end_with_parent() -> None:
    """End this process at once when its parent is gone, by whatever signal."""
    parent = multiprocessing.parent_process()
    assert parent is not None
    parent.join()
    os._exit(1)


_opened = functools.lru_cache(maxsize=4)(open_dataset)


def _trained(recipe: Recipe, folder: Path, data_dir: str | os.PathLike[str] | None, device: str) -> Rate:
    """Train in a process of the pool; nothing but the rate comes back of a run that diverged."""
    try:
        data = _opened(recipe.data, data_dir)
        found = run(recipe, folder, data_dir, device, opened=data, test=False)
    except DivergedError:
        return Rate(recipe.train.learning_rate)
    return Rate.of(recipe.train.learning_rate, found)
