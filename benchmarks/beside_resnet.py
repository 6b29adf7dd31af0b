"""A ViT beside a ResNet of as many operations, by the side of its photos: the paper's Figure 12.

    python benchmarks/beside_resnet.py --results vit_lab/results/beside_resnet_cpu.json
    python benchmarks/beside_resnet.py --device cuda --batch 64

ViT-S/16 and ViT-B/32 against BiT's ResNet50x1, all with 4 to 5 billion multiply-adds at 224 pixels. The
ResNet's filters are standardised once, before its speed is measured, as whoever uses it would do. Rounds
go through all models in turn, so that a busy moment of the machine hits each alike; a ratio is that of one
round. What a training step keeps of each image for its backward pass is counted, not timed: the bytes of all
distinct tensors that autograd saved. The fewer they are, the larger a batch fits.

The rule, for the page of claims: a ViT is about as fast where the 95 % interval (Student's t over rounds) of
its speed over the ResNet's lies above 0.9; it fits a larger batch where it keeps fewer bytes an image.
"""

import argparse
import shlex
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from vit_from_scratch import build_model
from vit_from_scratch.files import write_json
from vit_from_scratch.model.cost import count_parameters, counted_flops
from vit_from_scratch.model.hybrid import StandardisedConv
from vit_lab.experiments.resnet import build_resnet
from vit_lab.runs.environment import environment

RESNET, CLASSES = "ResNet50x1", 1000
VITS = ("S/16", "B/32")
SIDES = (64, 128, 224)


def models(side: int) -> dict[str, nn.Module]:
    """Return the models by name, untrained, for photos of this side."""
    vits = {f"ViT-{name}": build_model(name, image_size=side, num_classes=CLASSES) for name in VITS}
    return {RESNET: build_resnet(RESNET, num_classes=CLASSES), **vits}


def kept_bytes(model: nn.Module, images: Tensor) -> int:
    """Count the bytes of all distinct tensors, but weights, that a forward pass of (B, C, H, W) keeps."""
    own = {parameter.untyped_storage().data_ptr() for parameter in model.parameters()}
    kept: dict[int, Tensor] = {}  # they stay alive, so that no address is given twice

    def keep(saved: Tensor) -> Tensor:
        address = saved.untyped_storage().data_ptr()
        if address not in own:
            kept[address] = saved
        return saved

    with torch.autograd.graph.saved_tensors_hooks(keep, lambda saved: saved):
        model.train()(images)
    return sum(saved.untyped_storage().nbytes() for saved in kept.values())


def standardise_once(model: nn.Module) -> None:
    """Let a ResNet apply its filters as they are now, and not standardise them for each batch anew."""
    for layer in model.modules():
        if isinstance(layer, StandardisedConv):
            weight = layer.standardised().detach()
            layer.standardised = lambda weight=weight: weight


def seconds(run: Callable[[Tensor], object], images: Tensor, least: float) -> float:
    """Return the seconds that one batch takes, the mean over as many as fill the least time."""
    start, calls = time.perf_counter(), 0
    while True:
        run(images)
        if images.is_cuda:
            torch.cuda.synchronize()
        calls += 1
        if (spent := time.perf_counter() - start) >= least:
            return spent / calls


def measured(side: int, batch: int, rounds: int, least: float, device: str) -> dict[str, Any]:
    """Measure all models on photos of a side: speed in turn, and what a training step keeps."""
    torch.manual_seed(0)
    if device == "cuda":
        torch.set_float32_matmul_precision("high")  # TF32, in which convolutions are anyway
    found = {name: model.to(device) for name, model in models(side).items()}
    images, two = (torch.rand(count, 3, side, side, device=device) for count in (batch, 2))
    rows: dict[str, dict[str, Any]] = {
        name: {
            "parameters": count_parameters(model),
            "operations": counted_flops(model, (3, side, side)),
            "kept_bytes": kept_bytes(model, two) - kept_bytes(model, two[:1]),  # of each further one
        }
        for name, model in found.items()
    }
    standardise_once(found[RESNET])
    times: dict[str, list[float]] = {name: [] for name in found}
    with torch.inference_mode():
        for model in found.values():
            model.eval()(images)  # warm
        for _ in range(rounds):
            for name, model in found.items():
                times[name].append(seconds(model, images, least))
    for name, spent in times.items():
        rows[name]["images_per_second"] = batch / statistics.median(spent)
        rows[name]["over_resnet"] = [other / own for own, other in zip(spent, times[RESNET], strict=True)]
    return rows


def main() -> None:
    """Run from the command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--sides", type=int, nargs="+", default=list(SIDES), help="pixels, multiples of 32")
    parser.add_argument("--batch", type=int, default=8)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--least", type=float, default=0.5, help="seconds for each model in each round")
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--results", type=Path, help="also write everything to this JSON file")
    options = parser.parse_args()
    found: dict[str, Any] = {}
    for side in options.sides:
        rows = measured(side, options.batch, options.rounds, options.least, options.device)
        found[str(side)] = rows
        for name, row in rows.items():
            ratio = statistics.median(row["over_resnet"])
            print(
                f"{side:4} px  {name:11} {row['images_per_second']:8.1f} images/s  {ratio:5.2f} x {RESNET}  "
                f"{row['kept_bytes'] / 2**20:7.1f} MiB an image",
                flush=True,
            )
    if options.results:
        kept = {str(options.results): f"vit_lab/results/{options.results.name}"}
        words = ["benchmarks/beside_resnet.py", *(kept.get(word, word) for word in sys.argv[1:])]
        command = shlex.join(["python", *words])
        settings = {"command": command, "batch": options.batch, "rounds": options.rounds, "sides": found}
        write_json(options.results, settings | environment(0, options.device))


if __name__ == "__main__":
    main()
