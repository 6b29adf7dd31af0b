"""A model of which each process holds a part (FSDP2): one device is too small for all of it."""

from collections.abc import Callable

import torch
from torch import nn
from torch.optim.swa_utils import get_ema_multi_avg_fn

from vit_lab.runs.processes import local


def shard(model: nn.Module, device: torch.device, count: int, precision: str) -> None:
    """Spread a model over so many devices, block by block (FSDP2, `fully_shard`).

    Each device holds an equal part of every weight, in float32. The whole weights of a block are there only
    while it computes, in the type in which it computes.
    """
    from torch.distributed.device_mesh import init_device_mesh  # imported here: one process needs none of it
    from torch.distributed.fsdp import MixedPrecisionPolicy, fully_shard

    dtype = torch.bfloat16 if precision == "bfloat16" else None
    policy = MixedPrecisionPolicy(dtype, torch.float32, cast_forward_inputs=False)
    mesh = init_device_mesh(device.type, (count,))
    for parameter in model.parameters():  # kernels may be channels last, which cannot be cut
        parameter.data = parameter.data.contiguous()
    for blocks in [module for module in model.modules() if isinstance(module, nn.ModuleList)]:
        for block in blocks:
            fully_shard(block, mesh=mesh, reshard_after_forward=True, mp_policy=policy)
    fully_shard(model, mesh=mesh, reshard_after_forward=True, mp_policy=policy)


def local_average(decay: float) -> Callable[..., None]:
    """Return the moving average's step for weights of which each process holds a shard."""
    step = get_ema_multi_avg_fn(decay)
    return lambda averaged, new, count: step([*map(local, averaged)], [*map(local, new)], count)
