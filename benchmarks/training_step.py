"""How fast is a training step, and how much memory does it take, against timm, torchvision and lucidrains?

    python benchmarks/training_step.py                       # 32 px, patch 4, width 192, 6 layers, batch 128
    python benchmarks/training_step.py --device cuda --image-size 224 --patch-size 16 --dim 768 --depth 12

Every model has the same size. Rounds go through all in turn, so that a busy moment of the machine hits
each alike; the ratio is between medians. Peak memory is measured in a process of its own for each model.
"""

import argparse
import resource
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import torch
import torch.nn.functional as F
from torch import nn

from vit_from_scratch import VisionTransformer, ViTConfig
from vit_from_scratch.model.cost import forward_flops


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
    "vit_from_scratch": ours,
    "timm": timms,
    "torchvision": torchvisions,
    "vit-pytorch": lucidrains,
}


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


def step_of(name: str, size: argparse.Namespace, dtype: torch.dtype) -> Callable[[], None]:
    """Return a function that takes one training step."""
    torch.manual_seed(0)
    model = MODELS[name](size).to(size.device).train()
    optimiser = torch.optim.AdamW(model.parameters(), lr=1e-4, fused=True)
    images = torch.randn(size.batch, 3, size.image_size, size.image_size, device=size.device)
    labels = torch.randint(10, (size.batch,), device=size.device)

    def step() -> None:
        with torch.autocast(size.device, torch.bfloat16, enabled=dtype == torch.bfloat16):
            logits = model(images)
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


def matmul_peak(device: str, dtype: torch.dtype, side: int = 2048) -> float:
    """Measure the machine's fastest matrix multiplication, in operations a second."""
    a = torch.randn(side, side, device=device, dtype=dtype)

    def multiply() -> None:
        for _ in range(5):
            a @ a
        if device == "cuda":
            torch.cuda.synchronize()

    multiply()
    return 5 * 2 * side**3 / min(seconds(multiply) for _ in range(5))


def peak_memory(name: str, size: argparse.Namespace, dtype: torch.dtype) -> float:
    """Measure the memory of three steps in MiB, in a process of its own."""
    command = [sys.executable, __file__, *sys.argv[1:], "--memory-of", name]
    command += ["--type", "bfloat16" if dtype == torch.bfloat16 else "float32"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return float(done.stdout.split()[-1])


def own_peak() -> float:
    """Return this process's largest memory so far, in MiB."""
    status = Path("/proc/self/status")
    if status.exists():  # getrusage would count what the parent had before the start of this process
        line = next(line for line in status.read_text().splitlines() if line.startswith("VmHWM"))
        return int(line.split()[1]) / 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20  # bytes on macOS


def main() -> None:
    """Measure and print the table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    for option, default in (("image-size", 32), ("patch-size", 4), ("dim", 192), ("depth", 6), ("heads", 3)):
        parser.add_argument(f"--{option}", type=int, default=default)
    parser.add_argument("--batch", type=int, default=128)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--device", default="cpu", choices=["cpu", "cuda"])
    parser.add_argument("--memory-of", choices=MODELS, help=argparse.SUPPRESS)
    parser.add_argument("--type", choices=["float32", "bfloat16"], help="only this one")
    size = parser.parse_args()
    if size.memory_of:
        step = step_of(size.memory_of, size, getattr(torch, size.type))
        for _ in range(3):
            step()
        print(torch.cuda.max_memory_allocated() / 2**20 if size.device == "cuda" else own_peak())
        return
    flops = 3 * forward_flops(config_of(size)) * size.batch
    for dtype in (torch.float32, torch.bfloat16):
        if size.type and str(dtype) != f"torch.{size.type}":
            continue
        steps = {name: step_of(name, size, dtype) for name in MODELS}
        for step in steps.values():
            step()
        times: dict[str, list[float]] = {name: [] for name in MODELS}
        for _ in range(size.rounds):
            for name, step in steps.items():
                times[name].append(seconds(step))
        medians = {name: statistics.median(found) for name, found in times.items()}
        fastest = min(found for name, found in medians.items() if name != "vit_from_scratch")
        peak = matmul_peak(size.device, dtype)
        print(f"{dtype}, matrix multiplication {peak / 1e9:.0f} GFLOP/s")
        for name, median in medians.items():
            print(
                f"  {name:17} {size.batch / median:7.0f} images/s  {fastest / median:5.2f} x fastest peer  "
                f"{flops / median / peak:4.0%} of the peak  {peak_memory(name, size, dtype):6.0f} MiB"
            )


if __name__ == "__main__":
    main()
