"""A model of which each process holds a part (FSDP2): one device is too small for all of it."""

from collections.abc import Callable

import torch
from torch import Tensor, nn
from torch.optim.swa_utils import get_ema_multi_avg_fn


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
    lists = [module for module in model.modules() if isinstance(module, nn.ModuleList)]
    for module in [*(block for blocks in lists for block in blocks), model]:
        fully_shard(module, mesh=mesh, reshard_after_forward=True, mp_policy=policy)


def local_average(decay: float) -> Callable[..., None]:
    """Return the moving average's step for weights of which each process holds a shard."""
    step = get_ema_multi_avg_fn(decay)
    return lambda averaged, new, count: step([*map(local, averaged)], [*map(local, new)], count)


def is_sharded(model: nn.Module) -> bool:
    """Say whether each process holds a shard of a model's weights, as FSDP2 has it."""
    return hasattr(model, "set_requires_gradient_sync")


def whole(tensor: Tensor) -> Tensor:
    """Return a tensor of which each process holds a shard as a whole one; all processes must ask for it."""
    return getattr(tensor, "full_tensor", lambda: tensor)()


def local(tensor: Tensor) -> Tensor:
    """Return what this process holds of a tensor; changes to it change the tensor."""
    return getattr(tensor, "to_local", lambda: tensor)()


def placed_like(tensor: Tensor, other: Tensor) -> Tensor:
    """Return a whole tensor, the same in all processes, on another's device and sharded as that one is."""
    tensor = tensor.to(other.device)
    if not hasattr(other, "full_tensor"):  # it is not a DTensor
        return tensor
    from torch.distributed.tensor import distribute_tensor  # imported here: one process needs none of it

    return distribute_tensor(tensor, other.device_mesh, other.placements, src_data_rank=None)  # type: ignore[attr-defined]
