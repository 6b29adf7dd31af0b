"""torchrun itself starts `vit train`: a worker that is killed, the same command again, two nodes, shards."""

import json
import os
import signal
import socket
import subprocess
import sys
import tarfile
import time
from pathlib import Path

import psutil
import pytest

from vit_lab.cli import main

pytestmark = pytest.mark.slow
AGENT = [sys.executable, "-m", "torch.distributed.run"]
SMALL = ["--device", "cpu", "--set", "model.depth=1", "model.dim=16", "model.heads=2", "train.threads=1"]
MINUTE = 60


@pytest.fixture(autouse=True)
def _one_thread(monkeypatch):
    monkeypatch.setenv("OMP_NUM_THREADS", "1")


def start(launch, arguments, log):
    """Start torchrun as a shell would; what it and its workers print goes to a file."""
    with open(log, "w") as out:
        command = [*AGENT, *launch, "-m", "vit_lab", *arguments]
        return subprocess.Popen(command, stdout=out, stderr=subprocess.STDOUT)


def losses(folder):
    lines = Path(folder, "metrics.jsonl").read_text().splitlines()
    return [json.loads(line)["train_loss"] for line in lines]


def wait_for(condition, process, log):
    end = time.monotonic() + 2 * MINUTE
    while not condition():
        assert process.poll() is None, Path(log).read_text()
        assert time.monotonic() < end, Path(log).read_text()
        time.sleep(0.05)


def test_a_killed_worker_ends_the_run_within_a_minute_and_the_same_command_goes_on(tmp_path):
    train = ["train", "--data", "digits", *SMALL, "--epochs", "40", "--out", "x"]
    launch = ["--nproc-per-node=2", "--standalone"]
    metrics = tmp_path / "x" / "metrics.jsonl"
    process = start(launch, train, "log")
    wait_for(lambda: metrics.exists() and len(metrics.read_text().splitlines()) > 1, process, "log")
    workers = [child for child in psutil.Process(process.pid).children() if "train" in child.cmdline()]
    ranks = {int(worker.environ()["RANK"]): worker for worker in workers}
    ranks[1].send_signal(signal.SIGKILL)
    since = time.monotonic()
    assert process.wait(MINUTE) != 0
    assert time.monotonic() - since < MINUTE
    log = Path("log").read_text()
    assert f"Signal 9 (SIGKILL) received by PID {ranks[1].pid}" in log, "torchrun names the cause"
    said = [line for line in log.splitlines() if line.startswith("vit: ")]
    assert len(said) <= 1  # torchrun may end the other worker before it notices
    done = len(losses("x"))
    assert 1 < done < 40

    process = start(launch, train, "log")
    assert process.wait(5 * MINUTE) == 0, Path("log").read_text()
    assert len(losses("x")) == 40
    assert json.loads(Path("x/result.json").read_text())["hardware"]["processes"] == 2
    assert main(["train", "--data", "digits", *SMALL, "--epochs", "40", "--out", "alone"]) == 0
    assert losses("x") == pytest.approx(losses("alone"), rel=1e-3)


def test_two_nodes_train_on_shards_as_one_process_does(tmp_path, save_photo):
    for seed in range(40):
        save_photo(tmp_path / "photos" / ("cat" if seed < 20 else "dog") / f"{seed}.png", (24, 20), seed)
    os.mkdir("packed")
    for name in ("cat", "dog"):
        with tarfile.open(f"packed/{name}.tar", "w") as shard:
            shard.add(f"photos/{name}", name)
    options = [*SMALL, "train.workers=0", "train.batch_size=8", "--epochs", "2"]
    train = ["train", "--data", "shards:packed", *options]
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    nodes = ["--nnodes=2", "--nproc-per-node=1", "--rdzv-backend=c10d", f"--rdzv-endpoint=127.0.0.1:{port}"]
    both = [start(nodes, [*train, "--out", "x"], f"log-{number}") for number in (0, 1)]
    codes = [node.wait(3 * MINUTE) for node in both]
    assert codes == [0, 0], Path("log-0").read_text() + Path("log-1").read_text()
    assert json.loads(Path("x/result.json").read_text())["hardware"]["processes"] == 2
    assert main([*train, "--out", "alone"]) == 0
    assert losses("x") == pytest.approx(losses("alone"), rel=1e-3)
