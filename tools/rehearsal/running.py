"""One notebook from top to bottom, as in Colab, and what in its outputs is at fault."""

import json
import os
import re
import tempfile
from collections.abc import Iterator
from pathlib import Path

from jupyter_client.kernelspec import KernelSpecManager
from jupyter_client.manager import AsyncKernelManager
from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError, CellTimeoutError, DeadKernelError
from nbformat import NotebookNode

TIMEOUT = 600  # seconds for one cell
HIDDEN = ("PYTHONPATH", "VIRTUAL_ENV", "VIT_BUDGET", "MPLBACKEND")  # Colab has none of this machine's
WARNING = re.compile(r"^(\S.*?):\d+: (\w*Warning: .*)$", re.MULTILINE)
OURS = re.compile(r"[/\\]vit_(?:from_scratch|lab|classroom)[/\\]|ipykernel_\d|<ipython-input")
COLOUR = re.compile(r"\x1b\[[\d;]*m")


def run_as_in_colab(notebook: NotebookNode, python: Path, settings: dict[str, str]) -> list[str]:
    """Run a notebook in an empty folder, with an interpreter and environment variables of its own.

    Args:
        notebook: its outputs are filled in.
        python: the interpreter, from `folders.fresh_environment`.
        settings: environment variables besides those of this process.

    Returns:
        What was at fault, a line each.
    """
    with tempfile.TemporaryDirectory() as folder:
        kernels = Path(folder, "kernels", "python3")
        kernels.mkdir(parents=True)
        start = [str(python), "-m", "ipykernel_launcher", "-f", "{connection_file}"]
        spec = {"argv": start, "display_name": "Python 3", "language": "python"}
        (kernels / "kernel.json").write_text(json.dumps(spec), encoding="utf-8")
        specs = KernelSpecManager(kernel_dirs=[str(kernels.parent)], ensure_native_kernel=False)
        empty = Path(folder, "content")
        empty.mkdir()
        client = NotebookClient(
            notebook,
            km=AsyncKernelManager(kernel_name="python3", kernel_spec_manager=specs),
            timeout=TIMEOUT,
            resources={"metadata": {"path": str(empty)}},
        )
        kept = {name: value for name, value in os.environ.items() if name not in HIDDEN}
        errors = Path(folder, "errors.txt")
        try:
            with errors.open("w") as stderr:
                client.execute(cleanup_kc=True, env={**kept, **settings}, stderr=stderr)
        except CellExecutionError:
            pass  # it stands in the outputs
        except (CellTimeoutError, DeadKernelError, RuntimeError) as failure:
            last = errors.read_text(encoding="utf-8").splitlines()[-1:]
            return [f"{type(failure).__name__}: {str(failure).splitlines()[0]} {' '.join(last)}"]
    return list(faults(notebook))


def faults(notebook: NotebookNode) -> Iterator[str]:
    """Say which cells ended with an error, and which warnings name a file of ours or a cell."""
    for number, cell in enumerate(notebook.cells, start=1):
        expected = "raises-exception" in cell.metadata.get("tags", [])
        for output in cell.get("outputs", []):
            if output.output_type == "error" and not expected:
                yield f"cell {number}: {output.ename}: {output.evalue}"
        for path, warning in WARNING.findall(said(cell, "stderr")):
            if OURS.search(path):
                yield f"cell {number}: {warning} ({path})"


def said(cell: NotebookNode, stream: str = "stdout") -> str:
    """What a cell has printed, without colours."""
    outputs = [output for output in cell.get("outputs", []) if output.get("name") == stream]
    return COLOUR.sub("", "".join(output.text for output in outputs))
