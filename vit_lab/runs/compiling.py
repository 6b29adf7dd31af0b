"""torch.compile where it can work: on a CPU it needs a C++ compiler."""

import os
import shutil
import sys
from collections.abc import Callable
from typing import Any

import torch

COMPILERS = ("g++", "clang++", "cl")
"""The C++ compilers that torch.compile looks for; CXX may name another."""


def has_compiler() -> bool:
    """Say whether a C++ compiler is at hand."""
    return any(shutil.which(name) for name in (os.environ.get("CXX", ""), *COMPILERS) if name)


def compiled(network: Callable[..., Any], device: torch.device) -> Callable[..., Any]:
    """Return a network with its operations fused; as it is, with a sentence on stderr, where that cannot be.

    Args:
        network: a module, or what stands for one.
        device: on which it lies.
    """
    if device.type == "cpu" and not has_compiler():
        print(
            f"train.compile = true: no C++ compiler ({', '.join(COMPILERS)}) is at hand, so the model is "
            "trained as it is. Install one to have it compiled.",
            file=sys.stderr,
        )
        return network
    return torch.compile(network, dynamic=False)
