"""Is a CPU better used by one process of many threads, or by as many processes of one thread each?

    python benchmarks/threads_or_processes.py                      # about six minutes on two cores
    python benchmarks/threads_or_processes.py --cores 4 --results FILE

The step is that of `vit train` with Muon: for one process with all threads, and for data-parallel processes
that share the batch (DistributedDataParallel over gloo), as `torchrun --nproc-per-node=CORES` starts them.
They take turns: while one way computes, the other waits without computing. The ratio is that of a round, with
the lowest and the highest quarter of the rounds.
"""

import argparse
import datetime
import multiprocessing
import os
import statistics
import tempfile
import time
from multiprocessing.synchronize import Barrier
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist

from vit_from_scratch import VisionTransformer, ViTConfig
from vit_from_scratch.data import DataConfig, ImageData
from vit_from_scratch.files import write_json
from vit_from_scratch.training import TrainConfig
from vit_from_scratch.training.loop import train_step
from vit_from_scratch.training.state import TrainingState
from vit_lab.runs.allocator import keeping_freed_memory
from vit_lab.runs.distributed import current_engine
from vit_lab.runs.environment import environment

SHAPES = {
    "32/4": (ViTConfig(32, 4, dim=128, depth=6, heads=2, mlp_dim=512, num_classes=10), 128),
    "64/8": (ViTConfig(64, 8, dim=192, depth=8, heads=6, mlp_dim=768, num_classes=200), 128),
}
"""Models, by image size / patch size, and the images in a batch of all processes."""
TYPES = ("float32", "bfloat16")
STEPS, SETTLING = 4, 0.5
"""Steps in each turn, and the seconds that idle threads get to fall asleep before it."""


def batch_of(config: ViTConfig, images: int) -> ImageData:
    """Return a data set of random images, one batch large."""
    torch.manual_seed(0)
    pixels = torch.randint(256, (images, config.channels, *config.image_shape), dtype=torch.uint8)
    labels = torch.randint(config.num_classes, (images,))
    names = tuple(map(str, range(config.num_classes)))
    few = 2 * (pixels[:1], labels[:1])
    return ImageData(DataConfig("digits"), pixels, labels, *few, class_names=names)


def state_of(config: ViTConfig, data: ImageData, images: int, precision: str) -> TrainingState:
    """Return a model at the start of its training, for this process or, in a group, for all of it."""
    torch.manual_seed(0)
    muon = {"optimiser": "muon", "learning_rate": 0.006}
    settings = TrainConfig(epochs=1000, batch_size=images, precision=precision, **muon)
    return current_engine().start(VisionTransformer(config), data, settings)


def turn(state: TrainingState, data: ImageData, threads: int) -> float:
    """Return the seconds that a step takes, the mean of a few."""
    torch.set_num_threads(threads)
    share = state.data.share
    images = data.normalise(share.of(data.train_images).float())
    labels = share.of(data.train_labels)
    start = time.perf_counter()
    for _ in range(STEPS):
        train_step(state, images, labels)
    return (time.perf_counter() - start) / STEPS


def compare(rank: int, cores: int, rounds: int, meet: Barrier, store: str, found: Any) -> None:
    """Be one of the processes; the first one also is the process of many threads, and tells the times."""
    every = []
    for shape, (config, images) in SHAPES.items():
        for precision in TYPES:
            data = batch_of(config, images)
            alone = state_of(config, data, images, precision) if rank == 0 else None
            every.append((f"{shape} {precision}", data, alone, config, images, precision))
    meeting = dist.FileStore(store, cores)
    wait = datetime.timedelta(minutes=10)
    dist.init_process_group("gloo", store=meeting, rank=rank, world_size=cores, timeout=wait)
    with keeping_freed_memory(True):
        for name, data, alone, config, images, precision in every:
            shared = state_of(config, data, images, precision)
            times = []
            for number in range(rounds + 1):  # the first warms up
                pair = []
                for together in (number % 2 == 0, number % 2 == 1):
                    time.sleep(SETTLING)
                    meet.wait()
                    if together:
                        pair.append(turn(shared, data, 1))
                    elif alone is not None:
                        pair.append(turn(alone, data, cores))
                    meet.wait()
                times.append(pair if number % 2 else pair[::-1])
            if rank == 0:
                found.put((name, images, times[1:]))
    dist.destroy_process_group()


def main() -> None:
    """Run from the command line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--cores", type=int, default=os.cpu_count() or 2)
    parser.add_argument("--rounds", type=int, default=12)
    parser.add_argument("--results", type=Path, help="also write everything to this JSON file")
    options = parser.parse_args()
    if options.rounds < 2 or options.cores < 2:
        parser.error("expected --rounds and --cores of 2 or more")
    spawning = multiprocessing.get_context("spawn")
    meet, found, cells = spawning.Barrier(options.cores), spawning.Queue(), {}
    with tempfile.TemporaryDirectory() as folder:
        common = (options.cores, options.rounds, meet, f"{folder}/store", found)
        workers = [spawning.Process(target=compare, args=(rank, *common)) for rank in range(options.cores)]
        for worker in workers:
            worker.start()
        for _ in range(len(SHAPES) * len(TYPES)):
            name, images, rounds = found.get(timeout=600)
            low, ratio, high = statistics.quantiles([one / many for one, many in rounds], n=4)
            cells[name] = {"batch": images, "rounds": rounds, "speed": ratio, "quartiles": [low, high]}
            print(f"{name}: {ratio:.2f} times as fast in processes ({low:.2f} to {high:.2f})", flush=True)
            if options.results:
                write_json(options.results, {"cells": cells, **environment(options.cores, "cpu")})
        for worker in workers:
            worker.join()


if __name__ == "__main__":
    main()
