"""Which way through attention is faster: the explicit products or the fused kernel?

    python benchmarks/attention_paths.py

Prints, for each type and length, the time of the explicit way divided by that of the fused one: below 1
the explicit way wins. `vit_from_scratch.model.attention.fused_is_faster` follows this table.
"""

import argparse
import platform
import time
from collections.abc import Callable

import torch
from torch import Tensor

from vit_from_scratch.model.attention import explicit_attention, fused_attention, fused_is_faster

Attention = Callable[[Tensor, Tensor, Tensor], Tensor]


def best_seconds(attention: Attention, inputs: list[Tensor], training: bool, repeats: int) -> float:
    """Time one call (with its backward pass when training); the best of several counts."""
    times = []
    for _ in range(repeats + 1):  # the first call warms up
        start = time.perf_counter()
        with torch.set_grad_enabled(training):
            result = attention(*inputs)
            if training:
                result.sum().backward()
        if result.is_cuda:
            torch.cuda.synchronize()
        times.append(time.perf_counter() - start)
    return min(times[1:])


def main() -> None:
    """Run from the command line."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    options.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    options.add_argument("--heads", type=int, default=6)
    options.add_argument("--head-width", type=int, default=32)
    options.add_argument("--tokens", type=int, nargs="+", default=[17, 65, 197, 257, 577, 1025])
    options.add_argument("--repeats", type=int, default=7)
    chosen = options.parse_args()
    print(f"{platform.processor() or platform.machine()}, {chosen.device}, torch {torch.__version__}")
    print(f"{torch.get_num_threads()} threads, {chosen.heads} heads of width {chosen.head_width}")
    print("type       tokens  batch   inference   training   the model takes")
    for dtype in (torch.float32, torch.bfloat16):
        for tokens in chosen.tokens:
            batch = max(1, 4096 // tokens)
            shape = (batch, chosen.heads, tokens, chosen.head_width)
            inputs = [
                torch.randn(shape, dtype=dtype, device=chosen.device, requires_grad=True) for _ in range(3)
            ]
            ratios = []
            for training in (False, True):
                explicit, fused = (
                    best_seconds(attention, inputs, training, chosen.repeats)
                    for attention in (explicit_attention, fused_attention)
                )
                ratios.append(explicit / fused)
            paths = ["fused" if fused_is_faster(q) else "explicit" for q in (inputs[0].detach(), inputs[0])]
            name = str(dtype).removeprefix("torch.")
            print(f"{name:9} {tokens:7} {batch:6} {ratios[0]:11.2f} {ratios[1]:10.2f}   {', '.join(paths)}")


if __name__ == "__main__":
    main()
