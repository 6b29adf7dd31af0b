"""How fast and large are training and inference, beside timm, torchvision, transformers and vit-pytorch?

    python benchmarks/peers.py                          # all: three sizes, four kinds of images; an hour
    python benchmarks/peers.py --size Ti --cell 32/4 --mode training --type bfloat16 --profile
    python benchmarks/peers.py --device cuda --results peers_cuda.json

Every model has the same size and gets the same images, and lives in a process of its own. Rounds go through
all in turn, one computing while the others wait, so that a busy moment of the machine hits each alike; the
ratio is between medians, and its spread between the ratios of single rounds. A training step is forward,
backward and AdamW, in mixed precision where the type is bfloat16; inference casts the weights instead. Ours
takes its step as `train` does: on a CPU it keeps freed memory (`vit_from_scratch.training.allocator`); a row
without that shows what it is worth. A batch has as many images as the operations of a step allow.

Memory is the process's peak less what it held when its library had been used once. The machine's peak is that
of matrix products alone: the best over several sizes and of several tries. Start-up is the time from an empty
process to the first logits of a Ti/16. Results are written after each cell; cells that are there are kept.
"""

import argparse
import contextlib
import json
import multiprocessing
import resource
import statistics
import subprocess
import sys
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

SIZES = {"Ti": (192, 12, 3), "S": (384, 12, 6), "B": (768, 12, 12)}
"""Width, depth, heads."""
CELLS = ("32/4", "64/8", "224/16", "384/16")
"""Image size / patch size."""
MODES = ("training", "inference")
TYPES = ("float32", "bfloat16")
GFLOP = {"cpu": 150, "cuda": 20_000}
"""Operations of a step, by device: what a batch is made for."""
LEAST, MOST = 2, {"cpu": 128, "cuda": 1024}
"""Images in a batch."""
OURS, UNKEPT = "vit_from_scratch", "memory not kept"
WARM_ROUNDS = 2
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


def batch_of(size: argparse.Namespace) -> int:
    """Return the power of two whose step takes at most the operations that a step may take."""
    one = forward_flops(config_of(size)) * (3 if size.mode == "training" else 1)
    batch = LEAST
    while batch < MOST[size.device] and 2 * batch * one <= size.gflop * 1e9:
        batch *= 2
    return batch


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
    """Return a function that takes one step of training, or names one batch."""
    torch.manual_seed(0)
    dtype = getattr(torch, size.type)
    model = MODELS[name](size).to(size.device)
    images = torch.randn(size.batch, 3, size.image_size, size.image_size, device=size.device)
    labels = torch.randint(10, (size.batch,), device=size.device)

    def wait() -> None:
        if size.device == "cuda":
            torch.cuda.synchronize()

    if size.mode == "inference":
        model, images = model.eval().to(dtype), images.to(dtype)

        @torch.inference_mode()
        def answer() -> None:
            model(images)
            wait()

        return answer

    model.train()
    optimiser = torch.optim.AdamW(model.parameters(), lr=1e-4, fused=True)

    def step() -> None:
        with torch.autocast(size.device, dtype, enabled=dtype != torch.float32):
            logits = model(images)
        logits = getattr(logits, "logits", logits)  # transformers returns an object
        F.cross_entropy(logits.float(), labels).backward()
        optimiser.step()
        optimiser.zero_grad()
        wait()

    return step


def seconds(function: Callable[[], object]) -> float:
    """Time one call."""
    start = time.perf_counter()
    function()
    return time.perf_counter() - start


def work(name: str, size: argparse.Namespace, orders: Connection) -> None:
    """In a process of its own: take a step at each order, and answer with its seconds; at the end the MiB."""
    least = {"image_size": size.patch_size, "dim": 8 * size.heads, "depth": 1, "batch": 1}
    step_of(name, argparse.Namespace(**vars(size) | least))()  # libraries load much when first used
    at_first = own_memory("VmRSS")
    kept = name == OURS and size.mode == "training" and size.device == "cpu"
    with keeping_freed_memory(kept):
        step = step_of(name, size)
        orders.send("ready")
        while orders.recv() == "step":
            orders.send(seconds(step))
        on_gpu = size.device == "cuda"
        orders.send(torch.cuda.max_memory_allocated() / 2**20 if on_gpu else own_memory("VmHWM") - at_first)


def own_memory(kind: str) -> float:
    """Return this process's memory in MiB: "VmRSS" what it holds, "VmHWM" its largest so far."""
    status = Path("/proc/self/status")
    if status.exists():  # getrusage would count what the parent had before the start of this process
        line = next(line for line in status.read_text().splitlines() if line.startswith(kind))
        return int(line.split()[1]) / 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20  # bytes on macOS: the largest so far


def measured(size: argparse.Namespace) -> dict[str, Any]:
    """Measure all models in turn.

    Returns:
        For each model: images a second, its ratio to the fastest peer with the lowest and highest quarter of
        the rounds' ratios, the share of the machine's peak, and the memory in MiB.
    """
    names = [name for name in MODELS if name != UNKEPT or (size.mode == "training" and size.device == "cpu")]
    processes = multiprocessing.get_context("spawn")
    workers: dict[str, Connection] = {}
    with contextlib.ExitStack() as stack:
        for name in names:
            here, there = processes.Pipe()
            worker = processes.Process(target=work, args=(name, size, there), daemon=True)
            worker.start()
            there.close()  # so that a worker that dies is no silence
            stack.callback(worker.join)
            workers[name] = here
        for name, worker in workers.items():
            if worker.recv() != "ready":
                raise RuntimeError(f"{name} did not start")
        times: dict[str, list[float]] = {name: [] for name in names}
        for _ in range(WARM_ROUNDS + size.rounds):
            for name, worker in workers.items():
                worker.send("step")
                times[name].append(worker.recv())
        memory = {}
        for name, worker in workers.items():
            worker.send("stop")
            memory[name] = worker.recv()
    times = {name: found[WARM_ROUNDS:] for name, found in times.items()}
    medians = {name: statistics.median(found) for name, found in times.items()}
    fastest = min((name for name in names if name not in (OURS, UNKEPT)), key=medians.__getitem__)
    flops = (3 if size.mode == "training" else 1) * forward_flops(config_of(size)) * size.batch
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
    return {"batch": size.batch, "peak_gflops": peak / 1e9, "fastest_peer": fastest, "models": rows}


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


IN_PLAIN_USE = {
    OURS: "from vit_from_scratch import build_model; m = build_model('Ti/16')",
    "timm": "import timm; m = timm.create_model('vit_tiny_patch16_224')",
    "torchvision": "from torchvision.models import VisionTransformer as V; m = V(224, 16, 12, 3, 192, 768)",
    "transformers": "from transformers import ViTConfig as C, ViTForImageClassification as V; m = V(C("
    "hidden_size=192, num_hidden_layers=12, num_attention_heads=3, intermediate_size=768))",
    "vit-pytorch": "from vit_pytorch import ViT; m = ViT(image_size=224, patch_size=16, num_classes=1000, "
    "dim=192, depth=12, heads=3, mlp_dim=768)",
}
"""What builds a Ti/16 as each library's own page says."""
FIRST_LOGITS = "; import torch; torch.inference_mode().__enter__(); m.eval()(torch.zeros(1, 3, 224, 224))"


def start_up(repeats: int = 5) -> dict[str, float]:
    """Return how many seconds pass from an empty process to a Ti/16's first logits, PyTorch's included."""
    found: dict[str, list[float]] = {name: [] for name in IN_PLAIN_USE}
    for _ in range(repeats):
        for name, code in IN_PLAIN_USE.items():
            command = [sys.executable, "-c", code + FIRST_LOGITS]
            found[name].append(seconds(lambda command=command: subprocess.run(command, check=True)))
    return {name: min(times) for name, times in found.items()}


def show(cell: str, result: dict[str, Any]) -> None:
    """Print what was found in a cell."""
    print(f"{cell}: batch {result['batch']}, peak {result['peak_gflops']:.0f} GFLOP/s", flush=True)
    for name, row in result["models"].items():
        low, high = row["quartiles"]
        print(
            f"  {name:17} {row['images_per_second']:7.1f} images/s  {row['to_fastest_peer']:5.2f} x "
            f"fastest peer ({low:.2f} to {high:.2f})  {row['share_of_peak']:4.0%} of the peak  "
            f"{row['memory_mib']:6.0f} MiB",
            flush=True,
        )
    if "profile" in result:
        print("  " + ", ".join(f"{kind} {share:.0%}" for kind, share in result["profile"].items()))


def main() -> None:
    """Measure and print the tables."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--size", choices=SIZES, nargs="+", default=list(SIZES))
    parser.add_argument("--cell", choices=CELLS, nargs="+", default=CELLS, help="image / patch size")
    parser.add_argument("--mode", choices=MODES, nargs="+", default=MODES)
    parser.add_argument("--type", choices=TYPES, nargs="+", default=TYPES)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--gflop", type=float, help=f"operations of a step, in billions (default: {GFLOP})")
    parser.add_argument("--device", default="cpu", choices=list(GFLOP))
    parser.add_argument("--profile", action="store_true", help="also where our training step's time goes")
    parser.add_argument("--results", type=Path, help="also write everything to this JSON file")
    options = parser.parse_args()
    options.gflop = options.gflop or GFLOP[options.device]
    settings = {key: getattr(options, key) for key in ("rounds", "gflop", "device")}
    whole: dict[str, Any] = {"settings": settings, "cells": {}}
    if options.results and options.results.exists():
        whole = json.loads(options.results.read_text(encoding="utf-8"))
        if whole["settings"] != settings:
            sys.exit(f"error: {options.results} was measured with {whole['settings']}, not {settings}.")
    whole |= environment(torch.get_num_threads(), options.device)
    for mode in options.mode:
        for name in options.size:
            for cell in options.cell:
                for type_ in options.type:
                    key = f"{mode} {name} {cell} {type_}"
                    if key in whole["cells"]:
                        continue
                    size = argparse.Namespace(**vars(options))
                    size.mode, size.type = mode, type_
                    size.image_size, size.patch_size = map(int, cell.split("/"))
                    size.dim, size.depth, size.heads = SIZES[name]
                    size.batch = batch_of(size)
                    result = measured(size)
                    if options.profile and mode == "training":
                        result["profile"] = profile(size)
                    show(key, result)
                    whole["cells"][key] = result
                    if options.results:
                        write_json(options.results, whole)
    if "start_up" not in whole and options.device == "cpu":
        whole["start_up"] = start_up()
        print("start-up, seconds: " + ", ".join(f"{name} {s:.1f}" for name, s in whole["start_up"].items()))
        if options.results:
            write_json(options.results, whole)


if __name__ == "__main__":
    main()
