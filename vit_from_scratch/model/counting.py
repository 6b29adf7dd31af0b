"""Operations of any model, counted while it runs: for networks that no formula here describes."""

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.utils.flop_counter import FlopCounterMode

from vit_from_scratch.model.hybrid import StandardisedConv
from vit_from_scratch.model.modes import evaluating


def counted_flops(model: nn.Module, image: tuple[int, int, int]) -> int:
    """Let torch count the floating-point operations of a forward pass for one image, in evaluation mode.

    Matrix products and convolutions are counted, a multiply-add as 2 operations. A model on the meta device
    is counted without any computing: build it under ``with torch.device("meta")``.

    Args:
        model: takes images (B, C, H, W); it is left as it was.
        image: (C, H, W) of the image.
    """
    with FlopCounterMode(display=False) as counter:
        _run(model, image)
    return counter.get_total_flops()


def padding_flops(model: nn.Module, image: tuple[int, int, int]) -> int:
    """Count those operations of `counted_flops` that only multiply the zeros around a feature map.

    A 3 x 3 filter at the border of a map of 7 x 7 has a third of its places outside, so this comes to 3 to
    4% of a ResNet at 224 pixels. A compiler that counts can leave them out, as it knows the result.

    Args:
        model: takes images (B, C, H, W); its `StandardisedConv` layers are looked at.
        image: (C, H, W) of the image.
    """
    wasted = 0

    def look(layer: nn.Module, inputs: tuple[Tensor, ...]) -> None:
        nonlocal wasted
        if isinstance(layer, StandardisedConv):
            # Ones under filters of ones: each place of the result says how many pixels its filter sees.
            kernel, ones = layer.kernel_size[0], torch.ones(1, 1, *inputs[0].shape[2:], device="cpu")
            window = torch.ones(1, 1, kernel, kernel, device="cpu")
            seen = F.conv2d(layer.padded(ones), window, stride=layer.stride)
            zeros = seen.numel() * kernel**2 - int(seen.sum(dtype=torch.float64))
            wasted += 2 * zeros * layer.in_channels * layer.out_channels

    hooks = [layer.register_forward_pre_hook(look) for layer in model.modules()]
    try:
        _run(model, image)
    finally:
        for hook in hooks:
            hook.remove()
    return wasted


def kept_bytes(model: nn.Module, images: Tensor) -> tuple[int, int]:
    """Count what autograd keeps of a forward pass for the backward pass, each piece of memory once.

    The weights are not among it: they are there anyway.

    Args:
        model: as it runs in training; on the meta device nothing is computed and no memory is taken.
        images: (B, C, H, W).

    Returns:
        Bytes of floating-point numbers, and bytes of indices.
    """
    weights = {id(tensor.untyped_storage()) for tensor in model.state_dict().values()}
    kept: dict[int, Tensor] = {}

    def keep(tensor: Tensor) -> Tensor:
        kept[id(tensor.untyped_storage())] = tensor
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(keep, lambda tensor: tensor):
        model(images)
    floats = indices = 0
    for place, tensor in kept.items():
        size = 0 if place in weights else tensor.untyped_storage().nbytes()
        floats, indices = (floats + size, indices) if tensor.is_floating_point() else (floats, indices + size)
    return floats, indices


@torch.no_grad()
def _run(model: nn.Module, image: tuple[int, int, int]) -> None:
    weight = next(model.parameters())
    with evaluating(model):
        model(torch.zeros(1, *image, device=weight.device, dtype=weight.dtype))
