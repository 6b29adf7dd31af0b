"""All that has waited for a GPU, in one command: the most wanted first, until its minutes are over.

    python benchmarks/gpu_night.py --data-dir DEST --out night                # 25 minutes of one GPU
    python benchmarks/gpu_night.py --data-dir DEST --out night --minutes 60   # all of it
    python benchmarks/gpu_night.py --data-dir DEST --out trial --trial        # a thousandth of it, on a CPU

Every job is a command of its own, and its output is NAME.log in the folder. One that ended well is NAME.done,
and is not run again: the same command goes on where this one stopped, in the middle of a training, too. One
that fails keeps no other from running; failed jobs are named at the end, and the exit code is 1. A training
begins or goes on while three minutes are left, and stops when they are over; another job begins if its
planned minutes are left, and has failed when it takes three times as long. Results lie in the folder.
"""

import argparse
import os
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import torch

ROOT = Path(__file__).resolve().parent.parent
LEAST = 3  # minutes for which a training is worth going on with


@dataclass(frozen=True)
class Job:
    """A command of this Python: its words, planned minutes on a GPU, and the words that make it a trial.

    One that `resumes` may be stopped at any time.
    """

    name: str
    minutes: float
    words: Sequence[str]
    trial: Sequence[str] = ()
    full_budget: bool = False
    resumes: bool = False


def jobs(out: Path, data_dir: str, device: str) -> list[Job]:
    """Return what is to be done, in this order."""

    def benchmark(name: str, minutes: float, words: str, trial: str) -> Job:
        results = [] if name == "attention_paths" else ["--results", str(out / f"{name}.json")]
        return Job(
            name,
            minutes,
            [f"benchmarks/{name}.py", "--device", device, *words.split(), *results],
            trial.split(),
        )

    def chapter(name: str) -> Job:
        words = ["tools/measure_chapters.py", name, "--results", str(out / "chapter_minutes.json")]
        return Job(f"chapter_{name}", 1, words, full_budget=True)

    def training(recipe: str, minutes: float) -> Job:
        words = f"-m vit_lab train --recipe {recipe} --device {device}".split()
        words += [
            "--data-dir",
            data_dir,
            "--out",
            str(out / recipe),
            "--results",
            str(out / f"{recipe}.json"),
        ]
        few = "data.train_size=200 train.epochs=1 train.batch_size=50 train.warmup_steps=1 model.depth=1"
        trial = f"--set {few} train.compile=false train.precision=float32".split()
        return Job(recipe, minutes, words, trial, resumes=True)

    chapters = sorted(path.stem for path in (ROOT / "notebooks").glob("[0-9]*.md"))
    smallest = "--rounds 2 --gflop 1 --size Ti --cell 32/4"
    return [
        Job("no_step_waits", 1, ["-m", "pytest", "tests/training/test_devices.py", "--quiet"]),
        benchmark("attention_paths", 1, "--tokens 197 1025 4097", "--tokens 17 --repeats 1"),
        benchmark("beside_resnet", 2, "--batch 1024", "--rounds 2 --sides 32 --batch 1 --least 0"),
        training("cifar10-gpu-plain", 15),
        benchmark("peers", 8, "--rounds 3", smallest),
        *map(chapter, chapters if device == "cuda" else chapters[:1]),
        training("cifar10-gpu-conv", 15),
    ]


def run(job: Job, words: Sequence[str], out: Path, minutes: float, **settings: str) -> str:
    """Run a job with its output in a file, for so long at most; return how it ended."""
    command, environment = [sys.executable, *words], os.environ | settings
    with open(out / f"{job.name}.log", "a", encoding="utf-8") as log:
        log.write(f"$ {' '.join(command)}\n")
        log.flush()
        child = subprocess.Popen(command, cwd=ROOT, stdout=log, stderr=log, env=environment)
        try:
            if child.wait(timeout=60 * minutes) == 0:
                (out / f"{job.name}.done").write_text(" ".join(words), encoding="utf-8")
                return "done"
        except subprocess.TimeoutExpired:
            if job.resumes:
                return "stopped, goes on"
        finally:
            end(child)
    return f"failed: see {out / job.name}.log"


def end(child: subprocess.Popen) -> None:
    """End a process that still runs; first it is asked."""
    if child.poll() is None:
        child.send_signal(signal.SIGINT)
        try:
            child.wait(timeout=30)
        except subprocess.TimeoutExpired:
            child.kill()
            child.wait()


def run_all(todo: Sequence[Job], out: Path, minutes: float, trial: bool = False) -> list[str]:
    """Run jobs that are not done while there are minutes for them; return the names of those that failed."""
    out.mkdir(parents=True, exist_ok=True)
    end, failed = time.monotonic() + 60 * minutes, []
    for job in todo:
        words = [*job.words, *(job.trial if trial else ())]
        left = (end - time.monotonic()) / 60
        finished = out / f"{job.name}.done"
        if finished.exists() and finished.read_text("utf-8") == " ".join(words):
            print(f"{job.name}: done before", flush=True)
        elif not trial and (wants := min(job.minutes, LEAST) if job.resumes else job.minutes) > left:
            print(f"{job.name}: wants {wants:g} minutes, and {max(left, 0):.1f} are left", flush=True)
        else:
            start, budget = time.monotonic(), "full" if job.full_budget and not trial else "quick"
            ended = run(job, words, out, left if job.resumes else 3 * job.minutes, VIT_BUDGET=budget)
            print(f"{job.name}: {ended}, {(time.monotonic() - start) / 60:.1f} minutes", flush=True)
            failed += [job.name] if ended.startswith("failed") else []
    return failed


def main() -> int:
    """Run from the command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data-dir", required=True, help="folder that holds the data sets")
    parser.add_argument("--out", type=Path, required=True, help="folder for results, logs and what is done")
    parser.add_argument("--minutes", type=float, default=25)
    parser.add_argument("--trial", action="store_true", help="the smallest form of each job, on this CPU")
    given = parser.parse_args()
    if not given.trial and not torch.cuda.is_available():
        parser.error("PyTorch sees no GPU here; on a CPU --trial runs the smallest form of each job")
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # which ends the job, too
    out, device = given.out.resolve(), "cpu" if given.trial else "cuda"
    data_dir = os.environ["VIT_DATA_DIR"] = str(Path(given.data_dir).resolve())
    todo = jobs(out, data_dir, device)
    if failed := run_all(todo, out, given.minutes, given.trial):
        print(f"failed: {', '.join(failed)}", file=sys.stderr)
    return bool(failed)


if __name__ == "__main__":
    sys.exit(main())
