"""How fast and large are training and inference, beside timm, torchvision, transformers and vit-pytorch?

    python benchmarks/peers.py                          # all: three sizes, four kinds of images; an hour
    python benchmarks/peers.py --size Ti --cell 32/4 --mode training --type bfloat16
    python benchmarks/peers.py --device cuda --results peers_cuda.json

Every model has the same size, gets the same images and has a process of its own. (vit-pytorch's has two
norms more and no biases for queries, keys and values; each row has its number of parameters.) Rounds go
through all in turn, each round from another one on, and one computes while the others wait, so that a busy
moment of the machine hits each alike. The ratio to the fastest peer (by its median) is taken in each round:
its median counts, and its quartiles are the spread. A training step is forward, backward and AdamW, in
mixed precision where the type is bfloat16; inference casts the weights instead. When it trains on a CPU,
ours keeps freed memory (`vit_lab.runs.allocator`), as `vit train` does. Any model could, so
the row without it is the one that compares models alone. A batch has as many images as the operations of a
step allow.

Memory is the highest of a step, less what the process held when its library had been used once. The
machine's peak is that of matrix products alone: the best over several sizes and of several tries. On a CPU
each cell also says which share of our step each kind of operator takes. Start-up is the time from an empty
process to the first logits of a Ti/16; it is taken when all cells are there. Results are written after each
cell, each with its commit. Cells that are there are kept, if this machine and these versions measured them;
`--again` measures those that are asked for anew.
"""

import argparse
import contextlib
import functools
import itertools
import json
import multiprocessing
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from importlib.metadata import PackageNotFoundError, version
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as F
from torch import nn

from vit_from_scratch import VisionTransformer, ViTConfig
from vit_from_scratch.files import write_json
from vit_from_scratch.model.cost import forward_flops
from vit_lab.runs.allocator import keeping_freed_memory
from vit_lab.runs.environment import environment

SIZES = {"Ti": (192, 12, 3), "S": (384, 12, 6), "B": (768, 12, 12)}
"""Width, depth, heads."""
CELLS = ("32/4", "64/8", "224/16", "384/16")
"""Image size / patch size."""
MODES = ("training", "inference")
TYPES = ("float32", "bfloat16")
GFLOP = {"cpu": 40, "cuda": 5_000}
"""Operations of a step, by device: what a batch is made for. Five models share a GPU's memory."""
LEAST, MOST = 1, {"cpu": 128, "cuda": 1024}
"""Images in a batch."""
OURS, UNKEPT = "vit_from_scratch", "memory not kept"
WARM_ROUNDS = 2
LOADED = (
    "vit_from_scratch",
    "timm.models.vision_transformer",
    "torchvision.models",
    "transformers.models.vit.modeling_vit",
    "vit_pytorch",
)
"""What every worker begins with: imported once, in the process that the workers are forks of."""
PEAK_SIDES = {"cpu": (512, 1024, 2048, 4096), "cuda": (1024, 2048, 4096, 8192, 16384)}
KINDS = {
    "matrix products": ("aten::mm", "aten::addmm", "aten::mkldnn_convolution", "aten::convolution_backward"),
    "products of attention": (
        "aten::bmm",
        "aten::baddbmm",
        "aten::_scaled_dot_product_flash_attention_for_cpu",
        "aten::_scaled_dot_product_flash_attention_for_cpu_backward",
    ),
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
    """Return the power of two whose step takes at most the operations that a step may take, or 1."""
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


PEERS: dict[str, Callable[[argparse.Namespace], nn.Module]] = {
    "timm": timms,
    "torchvision": torchvisions,
    "transformers": hugging_faces,
    "vit-pytorch": lucidrains,
}
MODELS = {OURS: ours, UNKEPT: ours} | PEERS


def step_of(name: str, size: argparse.Namespace) -> tuple[Callable[[], None], int]:
    """Return a function that takes a step of training, or names a batch, and the number of parameters."""
    torch.manual_seed(0)
    dtype = getattr(torch, size.type)
    images = torch.randn(size.batch, 3, size.image_size, size.image_size).to(size.device)
    labels = torch.randint(10, (size.batch,)).to(size.device)
    model = MODELS[name](size).to(size.device)
    parameters = sum(parameter.numel() for parameter in model.parameters())

    def wait() -> None:
        if size.device == "cuda":
            torch.cuda.synchronize()

    if size.mode == "inference":
        model, images = model.eval().to(dtype), images.to(dtype)

        @torch.inference_mode()
        def answer() -> None:
            model(images)
            wait()

        return answer, parameters

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

    return step, parameters


def seconds(function: Callable[[], object]) -> float:
    """Time one call."""
    start = time.perf_counter()
    function()
    return time.perf_counter() - start


def work(name: str, size: argparse.Namespace, orders: Connection) -> None:
    """In a process of its own: answer each order with a step's seconds; at the end, parameters and MiB."""
    least = {"image_size": size.patch_size, "dim": 8 * size.heads, "depth": 1, "batch": 1}
    first_step, _ = step_of(name, argparse.Namespace(**vars(size) | least))
    first_step()  # libraries load much when first used
    del first_step
    at_first = memory("VmRSS")
    kept = name == OURS and size.mode == "training" and size.device == "cpu"
    with keeping_freed_memory(kept):
        step, parameters = step_of(name, size)
        forget_peak(size.device)  # building may have taken more than a step does
        orders.send("ready")
        while orders.recv() == "step":
            orders.send(seconds(step))
        on_gpu = size.device == "cuda"
        highest = torch.cuda.max_memory_allocated() / 2**20 if on_gpu else memory("VmHWM") - at_first
        orders.send((parameters, highest))


def memory(kind: str) -> float:
    """Return this process's MiB: "VmRSS" what it holds, "VmHWM" the most so far; 0 outside Linux."""
    status = Path("/proc/self/status")
    if not status.exists():
        return 0.0
    line = next(line for line in status.read_text().splitlines() if line.startswith(kind))
    return int(line.split()[1]) / 1024


def forget_peak(device: str) -> None:
    """Let the highest memory so far be what is held now."""
    if device == "cuda":
        torch.cuda.reset_peak_memory_stats()
    elif Path("/proc/self/clear_refs").exists():
        Path("/proc/self/clear_refs").write_text("5")


def measured(size: argparse.Namespace) -> dict[str, Any]:
    """Measure all models in turn.

    Returns:
        For each model: the seconds of each round, images a second, the ratio to the fastest peer with its
        quartiles, the share of the machine's peak, the memory in MiB, and the number of parameters.
    """
    names = [name for name in MODELS if name != UNKEPT or (size.mode == "training" and size.device == "cpu")]
    processes = multiprocessing.get_context("forkserver")
    processes.set_forkserver_preload(list(LOADED))
    workers: dict[str, Connection] = {}
    with contextlib.ExitStack() as stack:
        for name in names:
            here, there = processes.Pipe()
            worker = processes.Process(target=work, args=(name, size, there), daemon=True)
            worker.start()
            there.close()  # so that a worker that dies is no silence
            stack.callback(end, worker)
            workers[name] = here
        for name, worker in workers.items():
            heard(name, worker)
        times: dict[str, list[float]] = {name: [] for name in names}
        for number in range(WARM_ROUNDS + size.rounds):
            turn = number % len(names)
            for name in names[turn:] + names[:turn]:
                ask(workers[name], "step")
                times[name].append(heard(name, workers[name]))
        for worker in workers.values():
            ask(worker, "stop")
        facts = {name: heard(name, worker) for name, worker in workers.items()}
    times = {name: found[WARM_ROUNDS:] for name, found in times.items()}
    medians = {name: statistics.median(found) for name, found in times.items()}
    fastest = min(PEERS, key=medians.__getitem__)
    flops = (3 if size.mode == "training" else 1) * forward_flops(config_of(size)) * size.batch
    peak = matmul_peak(size.device, getattr(torch, size.type))
    rows = {}
    for name, found in times.items():
        ratios = [peer / own for own, peer in zip(found, times[fastest], strict=True)]
        low, ratio, high = statistics.quantiles(ratios, n=4)
        rows[name] = {
            "seconds": found,
            "images_per_second": size.batch / medians[name],
            "to_fastest_peer": ratio,
            "quartiles": [low, high],
            "share_of_peak": flops / medians[name] / peak,
            "memory_mib": facts[name][1],
            "parameters": facts[name][0],
        }
    return {"batch": size.batch, "peak_gflops": peak / 1e9, "fastest_peer": fastest, "models": rows}


def heard(name: str, worker: Connection) -> Any:
    """Return a worker's answer, or end where it died; what it printed stands above."""
    try:
        return worker.recv()
    except (EOFError, OSError):
        sys.exit(f"error: the process of {name} ended in the middle; cells that were done are kept.")


def ask(worker: Connection, order: str) -> None:
    """Send a worker an order; one that died is found out when its answer is heard."""
    with contextlib.suppress(BrokenPipeError):
        worker.send(order)


def end(worker: BaseProcess) -> None:
    """End a worker that may still wait for orders."""
    worker.terminate()
    worker.join()


@functools.cache
def matmul_peak(device: str, dtype: torch.dtype) -> float:
    """Measure the machine's fastest matrix multiplication, in operations a second, once a run."""
    best = 0.0
    for side in PEAK_SIDES[device]:
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


def profile(size: argparse.Namespace) -> dict[str, float]:
    """Return which share of the CPU's time in our step each kind of operator takes; the largest first."""
    with keeping_freed_memory(size.mode == "training"):
        step, _ = step_of(OURS, size)
        step()
        with torch.profiler.profile() as seen:
            for _ in range(2):
                step()
    spent = {event.key: event.self_cpu_time_total for event in seen.key_averages()}
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


def start_up(repeats: int = 5) -> dict[str, list[float]]:
    """Return the seconds from an empty process to a Ti/16's first logits, PyTorch's included: all tries."""
    found: dict[str, list[float]] = {name: [] for name in IN_PLAIN_USE}
    for _ in range(repeats):
        for name, code in IN_PLAIN_USE.items():
            command = [sys.executable, "-c", code + FIRST_LOGITS]
            found[name].append(seconds(lambda command=command: subprocess.run(command, check=True)))
    return found


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


def origin(device: str) -> dict[str, Any]:
    """Describe what measures: machine, versions with those of the peers, commit, date."""
    facts = environment(torch.get_num_threads(), device)
    return facts | {"versions": facts["versions"] | {name: version(name) for name in PEERS}}


def opened(path: Path | None, settings: dict[str, Any], here: dict[str, Any]) -> dict[str, Any]:
    """Return what stands in a results file, or the beginning of one; end where others measured it."""
    if path is None or not path.exists():
        return {"settings": settings, "cells": {}, **here}
    try:
        whole = json.loads(path.read_text(encoding="utf-8"))
        expected = {"settings": settings} | {key: here[key] for key in ("hardware", "versions")}
        same = all(whole[key] == value for key, value in expected.items())
    except (ValueError, KeyError):
        sys.exit(f"error: {path} is no results file of this benchmark; name another one.")
    if not same:
        sys.exit(f"error: {path} has another machine, versions or settings; name another file.")
    return whole


def chosen() -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--size", choices=SIZES, nargs="+", default=list(SIZES))
    parser.add_argument("--cell", choices=CELLS, nargs="+", default=CELLS, help="image / patch size")
    parser.add_argument("--mode", choices=MODES, nargs="+", default=MODES)
    parser.add_argument("--type", choices=TYPES, nargs="+", default=TYPES)
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--gflop", type=float, help=f"operations of a step, in billions (default: {GFLOP})")
    parser.add_argument("--device", default="cpu", choices=list(GFLOP))
    parser.add_argument("--again", action="store_true", help="also cells that the results have already")
    parser.add_argument("--results", type=Path, help="also write everything to this JSON file")
    options = parser.parse_args()
    if options.gflop is None:
        options.gflop = GFLOP[options.device]
    if options.rounds < 2 or options.gflop <= 0:
        parser.error("expected --rounds of 2 or more and --gflop above 0")
    if options.device == "cuda" and not torch.cuda.is_available():
        parser.error("--device cuda needs a GPU that PyTorch can use")
    for name in PEERS:
        try:
            version(name)
        except PackageNotFoundError:
            parser.error(f"{name} is not installed; `make test` makes an environment that has all of them")
    return options


def main() -> None:
    """Measure and print the tables."""
    options = chosen()
    settings = {key: getattr(options, key) for key in ("rounds", "gflop", "device")}
    here = origin(options.device)
    whole = opened(options.results, settings, here)
    whole.pop("commit", None)  # each cell has its own
    whole["date"] = here["date"]
    wanted = list(itertools.product(options.mode, options.size, options.cell, options.type))
    wanted = [cell for cell in wanted if options.again or " ".join(cell) not in whole["cells"]]
    start = time.perf_counter()
    for number, cell in enumerate(wanted, start=1):
        size = argparse.Namespace(**vars(options))
        size.mode, name, images, size.type = cell
        size.image_size, size.patch_size = map(int, images.split("/"))
        size.dim, size.depth, size.heads = SIZES[name]
        size.batch = batch_of(size)
        result = measured(size) | {"commit": here["commit"]}
        if options.device == "cpu":
            result["profile"] = profile(size)
        show(" ".join(cell), result)
        left = (time.perf_counter() - start) / number * (len(wanted) - number) / 60
        print(f"{number} of {len(wanted)}, about {left:.0f} minutes left", file=sys.stderr, flush=True)
        whole["cells"][" ".join(cell)] = result
        if options.results:
            write_json(options.results, whole)
    complete = len(whole["cells"]) == len(SIZES) * len(CELLS) * len(MODES) * len(TYPES)
    if complete and "start_up" not in whole and options.device == "cpu":
        whole["start_up"] = start_up()
        best = ", ".join(f"{name} {min(times):.1f}" for name, times in whole["start_up"].items())
        print(f"start-up, seconds: {best}")
        if options.results:
            write_json(options.results, whole)


if __name__ == "__main__":
    main()
