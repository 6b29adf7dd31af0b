"""Several processes in a test: forked, each with a number, talking through gloo."""

import multiprocessing
import os
import sys
import tempfile
import traceback
from pathlib import Path

import torch
import torch.distributed as dist

PATIENCE = 120  # seconds after which a test gives up on its processes

# At the first backward pass autograd decides whether it needs threads. If that comes only after the tests of
# exports, it starts some, and no fork of this process can compute gradients any more. So the first is here.
torch.ones(1, requires_grad=True).sum().backward()


def forked(count: int, target, *arguments) -> list[int]:
    """Call target(rank, *arguments) in so many processes at once, and return their exit codes."""
    context = multiprocessing.get_context("spawn" if torch.accelerator.is_available() else "fork")
    children = [context.Process(target=target, args=(rank, *arguments)) for rank in range(count)]
    for child in children:
        child.start()
    for child in children:
        child.join(PATIENCE)
        if child.exitcode is None:
            child.kill()
            child.join()
    return [child.exitcode for child in children]


def in_processes(count: int, job, *arguments) -> list:
    """Return what job(*arguments) returns in each of so many processes of one group."""
    with tempfile.TemporaryDirectory() as folder:
        codes = forked(count, _member, count, folder, job, arguments)
        said = [Path(folder, f"error-{rank}") for rank in range(count)]
        assert codes == [0] * count, "\n".join(path.read_text() for path in said if path.exists())
        return [torch.load(Path(folder, f"{rank}.pt"), weights_only=False) for rank in range(count)]


def _member(rank: int, count: int, folder: str, job, arguments) -> None:
    torch.set_num_threads(1)
    code = 1
    try:
        store = dist.FileStore(f"{folder}/store", count)
        dist.init_process_group("gloo", store=store, rank=rank, world_size=count)
        torch.save(job(*arguments), Path(folder, f"{rank}.pt"))
        dist.barrier()
        code = 0
    except BaseException:
        Path(folder, f"error-{rank}").write_text(traceback.format_exc())
    os._exit(code)


def commands(count: int, folder: Path, arguments: list[list[str]], before=lambda rank: None) -> list[int]:
    """Run `vit` in so many processes, as torchrun would; what each prints goes to out-RANK and err-RANK."""
    store = dist.TCPStore(
        "127.0.0.1", 0, is_master=True, wait_for_workers=False
    )  # as torchrun's agent has it
    return forked(count, _command, count, str(store.port), folder, arguments, before)


def _command(rank: int, count: int, port: str, folder: Path, arguments: list[list[str]], before) -> None:
    torch.set_num_threads(1)
    from vit_lab.cli import main

    numbers = {"RANK": rank, "WORLD_SIZE": count, "LOCAL_RANK": rank, "LOCAL_WORLD_SIZE": count}
    os.environ |= {name: str(number) for name, number in numbers.items()}
    os.environ |= {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port}
    os.environ |= {"TORCHELASTIC_USE_AGENT_STORE": "True", "TORCHELASTIC_RUN_ID": "none"}
    sys.stdout, sys.stderr = ((folder / f"{name}-{rank}").open("w") for name in ("out", "err"))
    before(rank)
    code = main(arguments[rank % len(arguments)])
    for stream in (sys.stdout, sys.stderr):
        stream.flush()
    os._exit(code)
