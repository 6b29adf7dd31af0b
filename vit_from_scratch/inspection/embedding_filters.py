"""Chapter 16: the main patterns among the filters of the patch embedding (Figure 7 left)."""

from dataclasses import dataclass

import torch
from torch import Tensor

from vit_from_scratch.errors import InputError
from vit_from_scratch.inputs import holds, require_tensor
from vit_from_scratch.inspection.inputs import in_float64


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


def component_signs(components: Tensor) -> Tensor:
    """Return the signs (k, 1) that make the largest value of each component (k, n) positive."""
    return components.gather(1, components.abs().argmax(dim=1, keepdim=True)).sign()


def decomposed(matrix: Tensor, name: str) -> tuple[Tensor, Tensor, Tensor]:
    """Return the reduced singular value decomposition U, S, V^T of a matrix.

    Raises:
        InputError: it has none, as it holds values that are not finite.
    """
    if not holds(matrix.isfinite().all()):
        raise InputError(
            f"{name} with values that are not finite (nan or inf): expected numbers; look at what made them."
        )
    return torch.linalg.svd(matrix, full_matrices=False)


def embedding_filter_components(weight: Tensor, k: int | None = None) -> FilterComponents:
    """Find the principal components of embedding filters, by a singular value decomposition.

    Args:
        weight: (D, C, P, P), as `PatchEmbedding.as_convolution_weight` returns it.
        k: how many; None for all, min(D, P^2 C).

    Raises:
        InputError: a weight of another shape or not finite, or a number of components that there are not.
    """
    require_tensor(weight, "filters", "(D, C, P, P)")
    if weight.ndim != 4:
        raise InputError(
            f"filters of shape {tuple(weight.shape)}: expected (D, C, P, P), as as_convolution_weight gives."
        )
    filters = in_float64(weight.detach()).flatten(1)  # (D, C P^2)
    most = min(filters.shape)
    k = most if k is None else k
    if not 1 <= k <= most:
        raise InputError(
            f"k = {k}: expected 1 to {most} components of filters of shape {tuple(weight.shape)}."
        )
    mean = filters.mean(dim=0)
    left, sizes, right = decomposed(filters - mean, "filters")
    signs = component_signs(right)
    components, coordinates = right * signs, left * sizes * signs.T
    share = sizes.square() / sizes.square().sum()
    return FilterComponents(
        components[:k].unflatten(1, weight.shape[1:]),
        share[:k],
        mean.unflatten(0, weight.shape[1:]),
        coordinates[:, :k],
    )
