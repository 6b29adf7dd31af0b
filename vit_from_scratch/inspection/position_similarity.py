"""Chapter 15: how alike the position embeddings of two patches are (Figure 7 centre, Figure 10)."""

import torch.nn.functional as F
from torch import Tensor

from vit_from_scratch.inputs import require_tensor
from vit_from_scratch.model.tokens import count_class_tokens


def position_similarity(position_embedding: Tensor, grid: tuple[int, int]) -> Tensor:
    """Return the cosine similarity of every patch's position embedding to every other's.

    The embedding is (1, T, D) or (T, D), patches of the grid (gh, gw) row by row; a class token's row, first,
    is left out.

    Returns:
        (gh, gw, gh, gw) from -1 to 1: entry [i, j] is the map of the patch in row i, column j.

    Raises:
        InputError: what is not a tensor, or does not fill the grid.
    """
    require_tensor(position_embedding, "positions", "(1, T, D)")
    vectors = position_embedding.detach().reshape(-1, position_embedding.shape[-1])  # (T, D)
    unit = F.normalize(vectors[count_class_tokens(len(vectors), grid) :], dim=-1)
    return (unit @ unit.T).reshape(*grid, *grid)
