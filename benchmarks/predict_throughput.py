"""How many images a second does a trained model name: here, compiled, as timm's model, in ONNX Runtime?

    python benchmarks/predict_throughput.py                       # the shipped cifar10, batches of 1 and 64
    python benchmarks/predict_throughput.py --weights runs/x --batch 1 16 256 --results throughput.json
    python benchmarks/predict_throughput.py --device cuda

`vit predict` reads each picture from its file and takes it alone; all others get the same pixels, as floats
from 0 to 1 in memory, and scale them. All must give the same logits before anything is timed. Rounds go
through all in turn, so that a busy moment of the machine hits each alike; ratios are to the plain model in
the same round, with the lowest and the highest quarter of the rounds. A way that this machine lacks is named
and left out.
"""

import argparse
import shutil
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from torchvision.transforms.functional import to_pil_image

from vit_from_scratch.data import load_photo
from vit_from_scratch.errors import InputError
from vit_from_scratch.files import write_json
from vit_lab.export.formats import missing_packages
from vit_lab.export.graphs import ScaledViT, onnx_file
from vit_lab.export.to_timm import to_timm
from vit_lab.runs.environment import environment
from vit_lab.runs.trained_models import TrainedModel, open_model

Run = Callable[[Tensor], Tensor]
PREDICT, EAGER, COMPILED, TIMM, ONNX = "vit predict", "model", "torch.compile", "timm", "ONNX Runtime"
TOLERANCE = 1e-2
"""Share of the largest logit by which ways may differ: TF32 on a GPU is another arithmetic, no mistake."""


def predicting(trained: TrainedModel, folder: Path, images: Tensor, device: str) -> Run:
    """Return what `vit predict` does with the pictures in a folder; the images themselves it passes over."""
    config = trained.model.config
    files = [folder / f"{number}.png" for number in range(len(images))]
    for file, image in zip(files, images, strict=True):
        to_pil_image((255 * image).round().byte().cpu()).save(file)

    def run(_: Tensor) -> Tensor:
        logits = []
        for file in files:
            pixels = load_photo(file, config.image_shape, config.channels).to(device)
            logits.append(trained.model(trained.scaling(255 * pixels[None])))
        return torch.cat(logits)

    return run


def compiled(model: ScaledViT) -> Run:
    """Return the model compiled.

    Raises:
        InputError: there is no compiler here.
    """
    if model.get_buffer("image_mean").device.type == "cpu" and not any(
        map(shutil.which, ("g++", "clang++", "cl"))
    ):
        raise InputError("there is no C++ compiler here")
    return torch.compile(model)


def timms(model: ScaledViT) -> Run:
    """Return timm's own model with the same weights.

    Raises:
        InputError: timm is not installed or has no such model.
    """
    theirs = to_timm(model.model)
    return lambda images: theirs(model.scaled(images))


def in_onnx_runtime(model: ScaledViT, device: str) -> Run:
    """Return the model in ONNX Runtime, with as many threads as torch has.

    Raises:
        InputError: it is not installed, or not for this device.
    """
    if missing := missing_packages(["onnx", "onnxscript", "onnxruntime"]):
        raise InputError(f"{', '.join(missing)} not installed")
    import onnxruntime

    provider = "CUDAExecutionProvider" if device == "cuda" else "CPUExecutionProvider"
    if provider not in onnxruntime.get_available_providers():
        raise InputError(f"ONNX Runtime has no {provider} here; pip install onnxruntime-gpu has it")
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = torch.get_num_threads()
    session = onnxruntime.InferenceSession(onnx_file(model.cpu(), {})[0], options, providers=[provider])
    return lambda images: torch.from_numpy(session.run(None, {"images": images.cpu().numpy()})[0])


def ways_of(
    trained: TrainedModel, folder: Path, images: Tensor, device: str, without: list[str]
) -> dict[str, Run]:
    """Return each way that is wanted and that this machine has, and say which ones it lacks."""
    model = ScaledViT(trained.model, trained.scaling).eval()
    found: dict[str, Run] = {PREDICT: predicting(trained, folder, images, device), EAGER: model}
    makers: dict[str, Callable[[], Run]] = {
        ONNX: lambda: in_onnx_runtime(model, device),  # first: it is made on the CPU
        COMPILED: lambda: compiled(model.to(device)),
        TIMM: lambda: timms(model.to(device)),
    }
    for name, make in makers.items():
        if name in without:
            continue
        try:
            found[name] = make()
        except InputError as error:
            print(f"without {name}: {str(error).rstrip('.')}", flush=True)
    model.to(device)
    return found


def check(ways: dict[str, Run], images: Tensor) -> None:
    """Run each way once, which warms it up, and raise a `RuntimeError` if one gives other logits."""
    expected = ways[EAGER](images).cpu()
    for name, run in ways.items():
        difference = (run(images).cpu() - expected).abs().max() / expected.abs().max().clamp(min=1)
        if not difference <= TOLERANCE:
            raise RuntimeError(f"{name} gives other logits (they differ by {difference:.1e})")


def seconds(run: Run, images: Tensor, least: float) -> float:
    """Return the seconds that one batch takes, the mean over as many as fill the least time."""
    start, calls = time.perf_counter(), 0
    while True:
        run(images)
        if images.is_cuda:
            torch.cuda.synchronize()
        calls += 1
        if (spent := time.perf_counter() - start) >= least:
            return spent / calls


@torch.no_grad()
def measured(ways: dict[str, Run], images: Tensor, rounds: int, least: float) -> dict[str, Any]:
    """Measure all ways in turn.

    Returns:
        For each: images a second, and its speed over the plain model's with the lowest and the highest
        quarter of the rounds.
    """
    check(ways, images)
    times: dict[str, list[float]] = {name: [] for name in ways}
    for _ in range(rounds):
        for name, run in ways.items():
            times[name].append(seconds(run, images, least))
    rows = {}
    for name, found in times.items():
        ratios = [plain / own for own, plain in zip(found, times[EAGER], strict=True)]
        low, middle, high = statistics.quantiles(ratios, n=4, method="inclusive")
        speed = len(images) / statistics.median(found)
        rows[name] = {"images_per_second": speed, "to_model": middle, "quartiles": [low, high]}
    return rows


def main() -> None:
    """Run from the command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--weights", default="cifar10", help="as for `vit predict`")
    parser.add_argument("--batch", type=int, nargs="+", default=[1, 64])
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--least", type=float, default=0.2, help="seconds for each way in each round")
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--without", choices=[COMPILED, TIMM, ONNX], nargs="+", default=[])
    parser.add_argument("--results", type=Path, help="also write everything to this JSON file")
    options = parser.parse_args()
    trained = open_model(options.weights)
    config = trained.model.config
    machine = environment(0, options.device)
    hardware = machine["hardware"]
    processor = hardware["gpu"] or hardware["processor"]
    print(f"{processor}, {hardware['threads']} threads, torch {torch.__version__}")
    found: dict[str, Any] = {}
    for batch in options.batch:
        generator = torch.Generator().manual_seed(0)
        pixels = torch.randint(256, (batch, config.channels, *config.image_shape), generator=generator)
        images = (pixels / 255).to(options.device)
        with tempfile.TemporaryDirectory() as folder, torch.no_grad():
            ways = ways_of(trained, Path(folder), images, options.device, options.without)
            found[str(batch)] = measured(ways, images, options.rounds, options.least)
        print(f"batches of {batch}")
        for name, row in found[str(batch)].items():
            low, high = row["quartiles"]
            print(
                f"  {name:14} {row['images_per_second']:8.0f} images/s  {row['to_model']:5.2f} x the model "
                f"({low:.2f} to {high:.2f})",
                flush=True,
            )
    if options.results:
        settings = {key: getattr(options, key) for key in ("weights", "rounds", "least", "device")}
        write_json(options.results, {"settings": settings, "batches": found, **machine})


if __name__ == "__main__":
    main()
