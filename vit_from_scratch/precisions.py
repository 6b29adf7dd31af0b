"""Whether a device computes in bfloat16 itself, or only imitates it."""

from collections.abc import Mapping
from typing import Any

import torch


def has_bfloat16_units(device: str) -> bool:
    """Say whether a device multiplies matrices in bfloat16 faster than in float32, as far as it can be known.

    Processors without such units take several times as long, and GPUs before NVIDIA's Ampere gain nothing.

    Args:
        device: "cpu", "cuda", "cuda:1" or another name of PyTorch's.

    Returns:
        True also for devices that are neither a processor nor NVIDIA's.
    """
    kind = torch.device(device).type
    if kind == "cuda":
        return torch.version.hip is not None or torch.cuda.get_device_capability(device) >= (8, 0)
    return kind != "cpu" or any(bool(found) for name, found in capabilities().items() if "bf16" in name)


def capabilities() -> Mapping[str, Any]:
    """Return what the processor can do, by name; an older PyTorch can be asked for AVX-512 alone."""
    if hasattr(torch.cpu, "get_capabilities"):
        return torch.cpu.get_capabilities()
    return {"avx512_bf16": torch.cpu._is_avx512_bf16_supported()}
