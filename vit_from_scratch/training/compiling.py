"""torch.compile where it can work: on a CPU it needs a C++ compiler."""

import os
import shutil
import sys

import torch
from torch import nn

COMPILERS = ("g++", "clang++", "cl")
"""The C++ compilers that torch.compile looks for; CXX may name another."""


def has_compiler() -> bool:
    """Say whether a C++ compiler is at hand."""
    return any(shutil.which(name) for name in (os.environ.get("CXX", ""), *COMPILERS) if name)


def compiled(network: nn.Module, device: torch.device) -> nn.Module:
    """Return a network with its operations fused, or as it is, with a sentence on stderr."""
    if device.type == "cpu" and not has_compiler():
        print(
            f"train.compile = true: no C++ compiler ({', '.join(COMPILERS)}) is at hand, so the model is "
            "trained as it is. Install one to have it compiled.",
            file=sys.stderr,
        )
        return network
    return torch.compile(network, dynamic=False)  # type: ignore[return-value]
