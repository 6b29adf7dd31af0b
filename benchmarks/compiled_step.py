"""How much faster is a training step that `torch.compile` has fused, and from which step on does it pay?

    python benchmarks/compiled_step.py                            # about five minutes on two cores
    python benchmarks/compiled_step.py --device cuda --results compiled_cuda.json

The plain step and the compiled one, as `train.compile` has it, take turns, each first in every second round.
What compiling costs is the first step's time less that of a later one, after a plain step has loaded what
both need, and with nothing left from an earlier run. Freed memory is kept, as `vit train` does.
"""

import argparse
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import torch
import torch.nn.functional as F

from vit_from_scratch import VisionTransformer, ViTConfig
from vit_from_scratch.files import write_json
from vit_from_scratch.training.state import has_compiler
from vit_lab.runs.allocator import keeping_freed_memory
from vit_lab.runs.environment import environment

SHAPES = {
    "32/4": (ViTConfig(32, 4, dim=192, depth=9, heads=3, mlp_dim=768, num_classes=10), 64),
    "224/16": (ViTConfig(224, 16, dim=192, depth=12, heads=3, mlp_dim=768, num_classes=1000), 8),
}
"""Models, by image size / patch size, and the images in a batch."""
TYPES = ("float32", "bfloat16")


def step_of(
    config: ViTConfig, batch: int, dtype: torch.dtype, device: str, fused: bool
) -> Callable[[], None]:
    """Return a function that takes a step of AdamW."""
    torch.manual_seed(0)
    model = VisionTransformer(config).to(device)
    network = torch.compile(model, dynamic=False) if fused else model
    optimiser = torch.optim.AdamW(model.parameters(), lr=1e-4, fused=True)
    height, width = config.image_shape
    images = torch.randn(batch, config.channels, height, width, device=device)
    labels = torch.randint(config.num_classes, (batch,), device=device)

    def step() -> None:
        with torch.autocast(device, dtype, enabled=dtype != torch.float32):
            loss = F.cross_entropy(network(images), labels)
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
        if device == "cuda":
            torch.cuda.synchronize()

    return step


def seconds(function: Callable[[], None]) -> float:
    """Time one call."""
    start = time.perf_counter()
    function()
    return time.perf_counter() - start


def in_turn(plain: Callable[[], None], fused: Callable[[], None], swapped: bool) -> tuple[float, float]:
    """Time both, in this order or the other one."""
    if swapped:
        later = seconds(fused)
        return seconds(plain), later
    return seconds(plain), seconds(fused)


def main() -> None:
    """Run from the command line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--device", default="cpu", choices=("cpu", "cuda"))
    parser.add_argument("--results", type=Path, help="also write everything to this JSON file")
    options = parser.parse_args()
    if options.rounds < 2:
        parser.error("expected --rounds of 2 or more")
    if options.device == "cuda" and not torch.cuda.is_available():
        parser.error("--device cuda needs a GPU that PyTorch can use")
    if options.device == "cpu" and not has_compiler():
        sys.exit("error: torch.compile needs a C++ compiler on a CPU, and there is none here.")
    cells = {}
    with keeping_freed_memory(options.device == "cpu"), tempfile.TemporaryDirectory() as cache:
        os.environ["TORCHINDUCTOR_CACHE_DIR"] = cache
        for shape, (config, batch) in SHAPES.items():
            for dtype in TYPES:
                torch.compiler.reset()
                plain, fused = (
                    step_of(config, batch, getattr(torch, dtype), options.device, wanted)
                    for wanted in (False, True)
                )
                plain()
                first = seconds(fused)
                fused()
                rounds = [in_turn(plain, fused, number % 2 == 1) for number in range(options.rounds)]
                low, ratio, high = statistics.quantiles([a / b for a, b in rounds], n=4)
                later = statistics.median(b for _, b in rounds)
                name = f"{shape} {dtype}"
                cells[name] = {
                    "batch": batch,
                    "rounds": rounds,
                    "speed": ratio,
                    "quartiles": [low, high],
                    "compiling": first - later,
                }
                print(
                    f"{name}: {ratio:.2f} times as fast ({low:.2f} to {high:.2f}) after {first:.0f} s",
                    flush=True,
                )
                if options.results:
                    facts = environment(torch.get_num_threads(), options.device)
                    write_json(options.results, {"cells": cells, **facts})


if __name__ == "__main__":
    main()
