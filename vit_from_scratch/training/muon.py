"""Muon (Jordan et al., 2024): momentum made orthogonal, for the weight matrices inside the blocks.

Muon replaces the momentum by the nearest matrix whose singular values are all 1, so that every direction
moves by the same amount. Five rounds of a polynomial (Newton and Schulz) come close enough to it, and are
matrix products alone. `torch.optim.Muon` takes neither matrices of one shape at once, which is faster, nor
fused queries, keys and values part by part: as one, the largest gradient would get most of the step.
"""
# pyright: reportPrivateImportUsage=false
# torch._foreach_* treat a list of tensors at once, on a GPU in a kernel or two: torch.optim's own way.

from collections import defaultdict
from collections.abc import Mapping

import torch
from torch import Tensor, nn

from vit_from_scratch.errors import InputError
from vit_from_scratch.model.attention import MultiHeadSelfAttention
from vit_from_scratch.precisions import has_bfloat16_units
from vit_from_scratch.training.config import TrainConfig

COEFFICIENTS = (3.4445, -4.7750, 2.0315)
"""Of a s + b s^3 + c s^5; five rounds take a singular value s between 0.01 and 1 to near 1."""
ROUNDS = 5


class Muon(torch.optim.Optimizer):
    """Muon with Nesterov momentum and decoupled weight decay; matrices of one shape take their step at once.

    Args:
        weights: the matrices (rows, columns), and how many equal parts of its rows each holds: 1 for a plain
            matrix, 3 for queries, keys and values in one.
        lr: the rate. A part of more rows than columns moves sqrt(rows / columns) times as far.
        weight_decay: share of a weight that is taken off at each step, times the rate.
        momentum: share of the momentum that is kept.
        dtype: in which matrices are made orthogonal; None for bfloat16 where the device has units for it,
            else float32.
    """

    def __init__(
        self,
        weights: Mapping[Tensor, int],
        lr: float,
        weight_decay: float = 0.0,
        momentum: float = 0.95,
        dtype: torch.dtype | None = None,
    ) -> None:
        self.parts = dict(weights)
        self.dtype = dtype
        super().__init__(list(weights), {"lr": lr, "weight_decay": weight_decay, "momentum": momentum})

    @torch.no_grad()
    def step(self, closure: None = None) -> None:  # pyright: ignore[reportIncompatibleMethodOverride]
        """Take a step along the gradients; a weight without one stays where it is. There is no closure."""
        (group,) = self.param_groups  # all matrices have the same settings
        weights = [weight for weight in group["params"] if weight.grad is not None]
        if not weights:
            return
        gradients = [weight.grad for weight in weights]
        for weight in weights:
            if not self.state[weight]:
                self.state[weight]["momentum_buffer"] = torch.zeros_like(weight)
        momenta = [self.state[weight]["momentum_buffer"] for weight in weights]
        torch._foreach_lerp_(momenta, gradients, 1 - group["momentum"])
        updates = torch._foreach_lerp(gradients, momenta, group["momentum"])  # Nesterov's look ahead
        torch._foreach_mul_(weights, 1 - group["lr"] * group["weight_decay"])
        by_shape: dict[torch.Size, list[tuple[Tensor, Tensor]]] = defaultdict(list)
        for weight, update in zip(weights, updates, strict=True):
            parts = self.parts[weight]
            for pair in zip(weight.chunk(parts), update.chunk(parts), strict=True):
                by_shape[pair[0].shape].append(pair)
        fast = has_bfloat16_units(str(weights[0].device))
        dtype = self.dtype or (torch.bfloat16 if fast else torch.float32)
        for (rows, columns), pairs in by_shape.items():
            targets, directions = zip(*pairs, strict=True)
            steps = orthogonalise(torch.stack(directions), dtype=dtype).to(targets[0].dtype).unbind()
            rate = group["lr"] * max(1.0, rows / columns) ** 0.5
            torch._foreach_add_(list(targets), list(steps), alpha=-rate)


def orthogonalise(matrices: Tensor, rounds: int = ROUNDS, dtype: torch.dtype = torch.bfloat16) -> Tensor:
    """Bring all singular values of each matrix near 1 and leave its singular vectors as they are.

    Args:
        matrices: (n, rows, columns), of any scale.
        rounds: of the polynomial. Five bring singular values that are not tiny to between 0.7 and 1.2.
        dtype: of the work and of the result, (n, rows, columns), which need not be exact.
    """
    a, b, c = COEFFICIENTS
    wide = matrices.shape[-2] <= matrices.shape[-1]
    x = (matrices if wide else matrices.mT).to(dtype)  # (n, r, c) with r <= c
    x = x / x.norm(dim=(-2, -1), keepdim=True).clamp(min=1e-7)  # no singular value above 1
    for _ in range(rounds):
        gram = x @ x.mT  # (n, r, r)
        x = torch.baddbmm(x, torch.baddbmm(gram, gram, gram, beta=b, alpha=c), x, beta=a)
    return x if wide else x.mT


class MuonBesideAdamW:
    """Two optimisers that look like one: Muon for the matrices of the blocks, AdamW for everything else.

    Args:
        model: what is trained.
        groups: its parameters, as `decay_groups` sorts them.
        config: the settings.
        dtype: as in `Muon`.

    Raises:
        InputError: the model has no blocks with weight matrices.
    """

    def __init__(
        self, model: nn.Module, groups: list[dict], config: TrainConfig, dtype: torch.dtype | None = None
    ) -> None:
        matrices = block_matrices(model)
        if not matrices:
            raise InputError(
                "optimiser = 'muon': expected a model with matrices in blocks, as VisionTransformer has; "
                "take 'adamw' for this one."
            )
        rest = [group | {"params": [p for p in group["params"] if p not in matrices]} for group in groups]
        muon = Muon(matrices, config.learning_rate, config.weight_decay, config.momentum, dtype)
        rate = config.adamw_learning_rate or config.learning_rate / 3
        adamw = torch.optim.AdamW(rest, lr=rate, betas=config.betas, fused=True)
        self.optimisers: tuple[torch.optim.Optimizer, ...] = (muon, adamw)
        self.param_groups = [group for one in self.optimisers for group in one.param_groups]

    def step(self) -> None:
        """Take a step with both."""
        for one in self.optimisers:
            one.step()

    def zero_grad(self) -> None:
        """Forget the gradients."""
        for one in self.optimisers:
            one.zero_grad()


def block_matrices(model: nn.Module) -> dict[Tensor, int]:
    """Return the dense weights inside blocks, and the matrices in each: 3 for queries, keys and values."""
    blocks = [part for module in model.modules() if isinstance(module, nn.ModuleList) for part in module]
    inside = [module for block in blocks for module in block.modules()]
    fused = {module.qkv.weight for module in inside if isinstance(module, MultiHeadSelfAttention)}
    weights = [module.weight for module in inside if isinstance(module, nn.Linear)]
    return {weight: 3 if weight in fused else 1 for weight in weights if weight.requires_grad}
