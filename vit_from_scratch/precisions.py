"""Whether a device computes in bfloat16 natively or emulates it."""

import os
import sys

import torch

UNITS = "VIT_BFLOAT16_UNITS"
"""The environment variable that says 1 or 0 in place of what the processor itself says."""


def has_bfloat16_units(device: str = "cpu") -> bool:
    """Say whether a device, by PyTorch's name, multiplies matrices in bfloat16 faster than in float32.

    Processors without such units take several times as long, and GPUs before NVIDIA's Ampere gain nothing.
    Any device that is neither a CPU nor a CUDA one is assumed to have them.
    """
    kind = torch.device(device).type
    if kind == "cuda":
        return torch.version.hip is not None or torch.cuda.get_device_capability(device) >= (8, 0)
    if kind != "cpu":
        return True
    if (told := os.environ.get(UNITS)) in ("0", "1"):
        return told == "1"
    if sys.platform == "darwin":  # Apple's processors have units, and PyTorch no fast kernels for them
        return False
    if hasattr(torch.cpu, "get_capabilities"):
        return any(found for name, found in torch.cpu.get_capabilities().items() if "bf16" in name)
    return torch.cpu._is_avx512_bf16_supported()  # an older PyTorch can be asked for AVX-512 alone
