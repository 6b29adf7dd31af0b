"""Chapter 16: the main patterns among the filters of the patch embedding (Figure 7 left)."""

from dataclasses import dataclass

import torch
from torch import Tensor

from vit_from_scratch.errors import InputError
from vit_from_scratch.inputs import holds, require_tensor
from vit_from_scratch.inspection.inputs import in_float64
from vit_from_scratch.settings import require


@dataclass(frozen=True, eq=False)
class FilterComponents:
    """Principal components of embedding filters.

    Attributes:
        components: (k, C, P, P), orthonormal; the first explains most. The entry of largest size in each is
            positive, so that pictures of two runs agree.
        variance_share: (k,), the share of the filters' variance that each explains.
        mean: (C, P, P), the mean filter.
        coordinates: (D, k), each filter in components: filters = mean + coordinates @ components.
    """

    components: Tensor
    variance_share: Tensor
    mean: Tensor
    coordinates: Tensor

    def rebuilt(self) -> Tensor:
        """Put the filters together again from the components kept, (D, C, P, P)."""
        return self.mean + torch.einsum("dk,kcpq->dcpq", self.coordinates, self.components)


def principal_components(rows: Tensor, name: str) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Return the components (k, n) of rows (d, n), the rows in these (d, k), sizes (k,), and the mean (n,).

    The largest value of each component is positive.
    """
    if not holds(rows.isfinite().all()):
        raise InputError(
            f"{name} with values that are not finite (nan or inf): expected numbers; look at what made them."
        )
    mean = rows.mean(dim=0)
    left, sizes, right = torch.linalg.svd(rows - mean, full_matrices=False)
    signs = right.gather(1, right.abs().argmax(dim=1, keepdim=True)).sign()  # (k, 1)
    return right * signs, left * sizes * signs.T, sizes, mean


def embedding_filter_components(weight: Tensor, k: int | None = None) -> FilterComponents:
    """Find the principal components of embedding filters, by a singular value decomposition.

    Args:
        weight: (D, C, P, P), as `PatchEmbedding.as_convolution_weight` returns it.
        k: how many; None for all, min(D, P^2 C).

    Raises:
        InputError: a weight of another shape or not finite, or a `k` out of range.
    """
    require_tensor(weight, "filters", "(D, C, P, P)")
    if weight.ndim != 4:
        raise InputError(
            f"filters of shape {tuple(weight.shape)}: expected (D, C, P, P), as as_convolution_weight gives."
        )
    filters = in_float64(weight.detach()).flatten(1)  # (D, C P^2)
    most = min(filters.shape)
    k = most if k is None else k
    require(1 <= k <= most, "k", k, f"1 to {most} components of filters of shape {tuple(weight.shape)}")
    components, coordinates, sizes, mean = principal_components(filters, "filters")
    share, shape = sizes.square() / sizes.square().sum(), weight.shape[1:]
    return FilterComponents(
        components[:k].unflatten(1, shape), share[:k], mean.unflatten(0, shape), coordinates[:, :k]
    )
