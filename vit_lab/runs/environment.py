"""Where a number came from: hardware, versions, commit, date."""

import datetime
import os
import platform
import subprocess
from importlib.metadata import version
from pathlib import Path
from typing import Any

import torch

from vit_lab.runs.processes import Processes

PACKAGES = ("vit-from-scratch", "torch", "torchvision", "numpy", "scikit-learn")
"""Those that decide a number."""


def environment(threads: int = 0, device: str | None = None) -> dict[str, Any]:
    """Describe this machine and this code, for the record beside a result.

    Args:
        threads: on which the CPU computes; 0 for torch's present number.
        device: where the model is, such as "cpu" or "cuda:1"; None for a GPU where there is one.

    Returns:
        "hardware", "versions", "commit" and "date" (UTC, ISO 8601).
    """
    processes = Processes.current()
    kind = torch.device(device or ("cuda" if torch.cuda.is_available() else "cpu")).type
    other = None if kind == "cpu" else kind  # such as mps
    return {
        "hardware": {
            "processor": _processor(),
            "cores": len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count(),
            "threads": threads or torch.get_num_threads(),
            "gpu": torch.cuda.get_device_name(device) if kind == "cuda" else other,
            "system": f"{platform.system()} {platform.machine()}",
            **({} if processes.alone else {"processes": processes.size}),
        },
        "versions": {"python": platform.python_version(), **{name: version(name) for name in PACKAGES}},
        "commit": commit(),
        "date": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
    }


def commit() -> str | None:
    """Return the commit of this project's checkout, with "+" where tracked files differ; None elsewhere."""
    folder = Path(__file__).parent
    if not any((above / ".git").exists() for above in folder.parents):
        return None  # a Mac without git would offer to install it

    def git(*arguments: str) -> str:
        done = subprocess.run(["git", *arguments], cwd=folder, capture_output=True, text=True, check=True)
        return done.stdout.strip()

    try:
        git("ls-files", "--error-unmatch", Path(__file__).name)  # not somebody else's repository around us
        return git("rev-parse", "HEAD") + ("+" if git("status", "--porcelain", "-uno") else "")
    except (OSError, subprocess.CalledProcessError):
        return None


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text("utf-8").splitlines()
        return next(line.split(":", 1)[1].strip() for line in lines if line.startswith("model name"))
    except (OSError, StopIteration):
        return platform.processor() or platform.machine()
