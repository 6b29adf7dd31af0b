"""How fast is a training step, against timm, torchvision, transformers and vit-pytorch, and where does it go?

    python benchmarks/training_step.py                        # all cells: three image sizes, two types
    python benchmarks/training_step.py --cell 32/4 --type bfloat16 --profile
    python benchmarks/training_step.py --device cuda --dim 768 --depth 12 --heads 12

Every model has the same size, and lives in a process of its own. Rounds go through all in turn, one computing
while the others wait, so that a busy moment of the machine hits each alike; the ratio is between medians, and
its spread between the ratios of single rounds. Ours takes its step as `train` does: on a CPU it keeps freed
memory (`vit_from_scratch.training.allocator`); a row without that shows what it is worth.

The peak is that of matrix products alone: the best over several sizes and of several tries.
"""

import argparse
import contextlib
import multiprocessing
import resource
import statistics
import time
from collections.abc import Callable
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as F
from torch import nn

from vit_from_scratch import VisionTransformer, ViTConfig
from vit_from_scratch.experiments.environment import environment
from vit_from_scratch.files import write_json
from vit_from_scratch.model.cost import forward_flops
from vit_from_scratch.training.allocator import keeping_freed_memory

CELLS = {"32/4": 128, "64/8": 128, "224/16": 32}
"""Image size / patch size, and how many images a batch has."""
OURS, UNKEPT = "vit_from_scratch", "memory not kept"
PEAK_SIDES = (512, 1024, 2048, 4096)
KINDS = {
    "matrix products": ("aten::mm", "aten::addmm", "aten::mkldnn_convolution", "aten::convolution_backward"),
    "products of attention": ("aten::bmm", "aten::baddbmm"),
    "copies and casts": ("aten::copy_", "aten::cat", "aten::clone"),
    "GELU": ("aten::gelu", "aten::gelu_backward"),
    "norms": ("aten::native_layer_norm", "aten::native_layer_norm_backward"),
    "softmax": ("aten::_softmax", "aten::_softmax_backward_data", "aten::div", "aten::div_"),
    "sums and additions": ("aten::sum", "aten::add", "aten::add_"),
    "optimiser": ("aten::_fused_adamw_",),
}
"""Operators by kind, for the profile; what is in none of them is "the rest"."""


def config_of(size: argparse.Namespace) -> ViTConfig:
    """Describe the size that is measured."""
    return ViTConfig(
        size.image_size,
        size.patch_size,
        dim=size.dim,
        depth=size.depth,
        heads=size.heads,
        mlp_dim=4 * size.dim,
        num_classes=10,
    )


def ours(size: argparse.Namespace) -> nn.Module:
    """Build this package's model."""
    return VisionTransformer(config_of(size))


def timms(size: argparse.Namespace) -> nn.Module:
    """Build timm's."""
    from timm.models.vision_transformer import VisionTransformer as Timm

    return Timm(
        img_size=size.image_size,
        patch_size=size.patch_size,
        embed_dim=size.dim,
        depth=size.depth,
        num_heads=size.heads,
        num_classes=10,
    )


def torchvisions(size: argparse.Namespace) -> nn.Module:
    """Build torchvision's."""
    from torchvision.models import VisionTransformer as Torchvision

    return Torchvision(
        size.image_size, size.patch_size, size.depth, size.heads, size.dim, 4 * size.dim, num_classes=10
    )


def hugging_faces(size: argparse.Namespace) -> nn.Module:
    """Build the one of transformers."""
    from transformers import ViTConfig as Settings
    from transformers import ViTForImageClassification

    settings = Settings(
        hidden_size=size.dim,
        num_hidden_layers=size.depth,
        num_attention_heads=size.heads,
        intermediate_size=4 * size.dim,
        image_size=size.image_size,
        patch_size=size.patch_size,
        hidden_dropout_prob=0.0,
        attention_probs_dropout_prob=0.0,
        num_labels=10,
    )
    return ViTForImageClassification(settings)


def lucidrains(size: argparse.Namespace) -> nn.Module:
    """Build the one of vit-pytorch."""
    from vit_pytorch import ViT

    return ViT(
        image_size=size.image_size,
        patch_size=size.patch_size,
        num_classes=10,
        dim=size.dim,
        depth=size.depth,
        heads=size.heads,
        dim_head=size.dim // size.heads,
        mlp_dim=4 * size.dim,
    )


MODELS: dict[str, Callable[[argparse.Namespace], nn.Module]] = {
    OURS: ours,
    UNKEPT: ours,
    "timm": timms,
    "torchvision": torchvisions,
    "transformers": hugging_faces,
    "vit-pytorch": lucidrains,
}


def step_of(name: str, size: argparse.Namespace) -> Callable[[], None]:
    """Return a function that takes one training step."""
    torch.manual_seed(0)
    model = MODELS[name](size).to(size.device).train()
    optimiser = torch.optim.AdamW(model.parameters(), lr=1e-4, fused=True)
    images = torch.randn(size.batch, 3, size.image_size, size.image_size, device=size.device)
    labels = torch.randint(10, (size.batch,), device=size.device)

    def step() -> None:
        with torch.autocast(size.device, torch.bfloat16, enabled=size.type == "bfloat16"):
            logits = model(images)
        logits = getattr(logits, "logits", logits)  # transformers returns an object
        F.cross_entropy(logits.float(), labels).backward()
        optimiser.step()
        optimiser.zero_grad()
        if size.device == "cuda":
            torch.cuda.synchronize()

    return step


def seconds(function: Callable[[], object]) -> float:
    """Time one call."""
    start = time.perf_counter()
    function()
    return time.perf_counter() - start


def work(name: str, size: argparse.Namespace, orders: Connection) -> None:
    """In a process of its own: take a step at each order, and answer with its seconds, or with the memory."""
    with keeping_freed_memory(name == OURS and size.device == "cpu"):
        step = step_of(name, size)
        for _ in range(2):
            step()
        orders.send("ready")
        while orders.recv() == "step":
            orders.send(seconds(step))
        on_gpu = size.device == "cuda"
        orders.send(torch.cuda.max_memory_allocated() / 2**20 if on_gpu else own_peak())


def own_peak() -> float:
    """Return this process's largest memory so far, in MiB."""
    status = Path("/proc/self/status")
    if status.exists():  # getrusage would count what the parent had before the start of this process
        line = next(line for line in status.read_text().splitlines() if line.startswith("VmHWM"))
        return int(line.split()[1]) / 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20  # bytes on macOS


def measured(size: argparse.Namespace) -> dict[str, Any]:
    """Measure all models in turn.

    Returns:
        For each model: images a second, its ratio to the fastest peer with the lowest and highest quarter of
        the rounds' ratios, the share of the peak, and the memory in MiB.
    """
    processes = multiprocessing.get_context("spawn")
    workers: dict[str, Connection] = {}
    with contextlib.ExitStack() as stack:
        for name in MODELS:
            here, there = processes.Pipe()
            worker = processes.Process(target=work, args=(name, size, there), daemon=True)
            worker.start()
            there.close()  # so that a worker that dies is no silence
            stack.callback(worker.join)
            workers[name] = here
            if here.recv() != "ready":
                raise RuntimeError(f"{name} did not start")
        times: dict[str, list[float]] = {name: [] for name in MODELS}
        for _ in range(size.rounds):
            for name, worker in workers.items():
                worker.send("step")
                times[name].append(worker.recv())
        memory = {}
        for name, worker in workers.items():
            worker.send("stop")
            memory[name] = worker.recv()
    medians = {name: statistics.median(found) for name, found in times.items()}
    fastest = min((name for name in MODELS if name not in (OURS, UNKEPT)), key=medians.__getitem__)
    flops = 3 * forward_flops(config_of(size)) * size.batch
    peak = matmul_peak(size.device, getattr(torch, size.type))
    rows = {}
    for name, found in times.items():
        ratios = [peer / own for own, peer in zip(found, times[fastest], strict=True)]
        low, _, high = statistics.quantiles(ratios, n=4)
        rows[name] = {
            "images_per_second": size.batch / medians[name],
            "to_fastest_peer": medians[fastest] / medians[name],
            "quartiles": [low, high],
            "share_of_peak": flops / medians[name] / peak,
            "memory_mib": memory[name],
        }
    return {"peak_gflops": peak / 1e9, "fastest_peer": fastest, "models": rows}


def matmul_peak(device: str, dtype: torch.dtype) -> float:
    """Measure the machine's fastest matrix multiplication, in operations a second."""
    best = 0.0
    for side in PEAK_SIDES:
        a = torch.randn(side, side, device=device).to(dtype)
        calls = max(1, 2**31 // side**3)

        def multiply(a: torch.Tensor = a, calls: int = calls) -> None:
            for _ in range(calls):
                a @ a
            if device == "cuda":
                torch.cuda.synchronize()

        multiply()
        best = max(best, calls * 2 * side**3 / min(seconds(multiply) for _ in range(5)))
    return best


def profile(size: argparse.Namespace, steps: int = 5) -> dict[str, float]:
    """Return which share of the time of our step each kind of operator takes; the largest first."""
    with keeping_freed_memory(size.device == "cpu"):
        step = step_of(OURS, size)
        for _ in range(3):
            step()
        with torch.profiler.profile() as seen:
            for _ in range(steps):
                step()
    spent = {event.key: event.self_cpu_time_total for event in seen.key_averages()}
    if size.device == "cuda":
        spent = {event.key: event.self_device_time_total for event in seen.key_averages()}
    total = sum(spent.values())
    shares = {kind: sum(spent.pop(name, 0.0) for name in names) / total for kind, names in KINDS.items()}
    shares["the rest"] = sum(spent.values()) / total
    return dict(sorted(shares.items(), key=lambda item: -item[1]))


def main() -> None:
    """Measure and print the tables."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    for option, default in (("dim", 192), ("depth", 6), ("heads", 3), ("rounds", 9)):
        parser.add_argument(f"--{option}", type=int, default=default)
    parser.add_argument("--cell", choices=CELLS, nargs="+", default=list(CELLS), help="image / patch size")
    parser.add_argument("--type", choices=["float32", "bfloat16"], help="only this one")
    parser.add_argument("--batch", type=int, help=f"images in a step (default: {CELLS})")
    parser.add_argument("--device", default="cpu", choices=["cpu", "cuda"])
    parser.add_argument("--profile", action="store_true", help="also where the time of our step goes")
    parser.add_argument("--results", type=Path, help="also write everything to this JSON file")
    options = parser.parse_args()
    found: dict[str, Any] = {}
    for cell in options.cell:
        for type_ in [options.type] if options.type else ["float32", "bfloat16"]:
            size = argparse.Namespace(**vars(options))
            size.image_size, size.patch_size = map(int, cell.split("/"))
            size.batch, size.type = options.batch or CELLS[cell], type_
            result = measured(size)
            found[f"{cell} {type_}"] = result
            print(f"{cell} {type_}: batch {size.batch}, peak {result['peak_gflops']:.0f} GFLOP/s", flush=True)
            for name, row in result["models"].items():
                low, high = row["quartiles"]
                print(
                    f"  {name:17} {row['images_per_second']:7.0f} images/s  {row['to_fastest_peer']:5.2f} x "
                    f"fastest peer ({low:.2f} to {high:.2f})  {row['share_of_peak']:4.0%} of the peak  "
                    f"{row['memory_mib']:6.0f} MiB",
                    flush=True,
                )
            if options.profile:
                result["profile"] = profile(size)
                print("  " + ", ".join(f"{kind} {share:.0%}" for kind, share in result["profile"].items()))
    if options.results:
        settings = {key: getattr(options, key) for key in ("dim", "depth", "heads", "rounds", "device")}
        write_json(options.results, {"settings": settings, "cells": found, **environment(0, options.device)})


if __name__ == "__main__":
    main()
