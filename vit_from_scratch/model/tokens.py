"""Chapter 2: patch embeddings become the token sequence z_0: class token in front, positions added."""

import math

import torch
import torch.nn.functional as F
from einops import rearrange
from torch import Tensor, nn

from vit_from_scratch.errors import InputError
from vit_from_scratch.inputs import require_tensor
from vit_from_scratch.model.config import ViTConfig


def sincos_2d(grid: tuple[int, int], dim: int, device: torch.device | str | None = None) -> Tensor:
    """Fixed sine and cosine positions (N, D) on a two-dimensional grid, patches row by row.

    The first half of the values encodes the row, the second the column; each half is D/4 sines, then
    D/4 cosines, at frequencies from 1 down to 1 / 10,000.

    Args:
        grid: rows and columns (gh, gw).
        dim: width D, a multiple of 4.
        device: where to compute them; torch's default device if None.

    Raises:
        InputError: a width that is not a multiple of 4.
    """
    if dim < 4 or dim % 4:
        raise InputError(f"dim = {dim}: expected a multiple of 4: sine and cosine, of row and column.")
    on_apple = str(device).startswith("mps")  # whose GPUs have no double precision
    precision = torch.float32 if on_apple else torch.float64
    frequencies = 10_000.0 ** -torch.linspace(0, 1, dim // 4, dtype=precision, device=device)  # (D/4,)
    axes = (torch.arange(n, dtype=precision, device=device) for n in grid)
    rows, columns = torch.meshgrid(*axes, indexing="ij")
    row = rows.flatten()[:, None] * frequencies  # (N, D/4), angles
    column = columns.flatten()[:, None] * frequencies
    return torch.cat([row.sin(), row.cos(), column.sin(), column.cos()], dim=1).float()


def count_class_tokens(count: int, grid: tuple[int, int]) -> int:
    """Return how many of ``count`` tokens come before a grid's patches, 0 or 1, or raise an `InputError`."""
    extra = count - grid[0] * grid[1]
    if extra not in (0, 1):
        raise InputError(
            f"{count} tokens: expected {grid[0] * grid[1]} for a grid of {grid[0]} x {grid[1]}, or one more "
            "with a class token; check the grid."
        )
    return extra


def resize_positions(position: Tensor, old_grid: tuple[int, int], new_grid: tuple[int, int]) -> Tensor:
    """Interpolate learned positions over another patch grid (section 3.2): (1, T', D).

    Bilinear between the corners, which keep their vectors, as the reference code's zoom does; a class
    token's stays as it is.

    Args:
        position: (1, T, D), patches row by row, after a class token's row if there is one.
        old_grid: rows and columns (gh, gw) that the positions are for.
        new_grid: rows and columns that they are wanted for.

    Raises:
        InputError: the positions are not (1, T, D), or not those of ``old_grid``.
    """
    require_tensor(position, "positions", "(1, T, D)")
    if position.ndim != 3 or position.shape[0] != 1:
        raise InputError(f"positions of shape {tuple(position.shape)}: expected (1, T, D).")
    extra = count_class_tokens(position.shape[1], old_grid)
    if old_grid == new_grid:
        return position
    grid = rearrange(position[:, extra:], "one (gh gw) d -> one d gh gw", gh=old_grid[0])
    grid = F.interpolate(grid, new_grid, mode="bilinear", align_corners=True)
    return torch.cat([position[:, :extra], rearrange(grid, "one d gh gw -> one (gh gw) d")], dim=1)


def grid_of_same_shape(grid: tuple[int, int], num_patches: int) -> tuple[int, int]:
    """Return the grid of so many patches with the proportions of another, or raise an `InputError`."""
    rows = math.isqrt(max(0, num_patches) * grid[0] // grid[1])
    columns = num_patches // max(1, rows)
    if not rows or rows * columns != num_patches or rows * grid[1] != columns * grid[0]:
        raise InputError(
            f"{num_patches} patches: expected a grid of the proportions {grid[0]} : {grid[1]} that the model "
            "was built for; resize the images to a multiple of that."
        )
    return rows, columns


class Positions(nn.Module):
    """A vector for each token's place (section 3.1, appendix D.4).

    Args:
        config: uses ``class_token``, ``position``, ``grid`` and ``dim``.
    """

    def __init__(self, config: ViTConfig) -> None:
        super().__init__()
        self.grid = config.grid
        self.kind = config.position
        self.dim = dim = config.dim
        self.first_patch = int(config.class_token)
        self.register_parameter("class_token", None)  # in a TokenSequence it comes before the positions
        rows, columns = config.grid
        if self.kind == "learned":
            self.position = nn.Parameter(torch.empty(1, config.num_tokens, dim))
        elif self.kind == "learned_2d":
            # The class token has no place in the grid, so it gets no position of its own.
            self.row_position = nn.Parameter(torch.empty(rows, dim))
            self.column_position = nn.Parameter(torch.empty(columns, dim))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Normal positions of standard deviation 0.02, as in the reference code."""
        for name in ("position", "row_position", "column_position"):
            if hasattr(self, name):
                nn.init.normal_(getattr(self, name), std=0.02)

    def position_embedding(
        self, num_patches: int | None = None, device: torch.device | None = None
    ) -> Tensor | None:
        """E_pos as it is added: (1, T, D), the class token's row first; None without positions.

        Args:
            num_patches: patches of the image, if its size is not the one that the model was built for.
            device: where fixed positions are computed; learned ones are where the model is.
        """
        if self.kind in ("none", "relative"):
            return None
        if self.kind == "learned":
            position = self.position
        elif self.kind == "learned_2d":
            position = (self.row_position[:, None] + self.column_position).flatten(0, 1)[None]  # (1, N, D)
        else:
            position = sincos_2d(self.grid, self.dim, device=device)[None]
        if self.first_patch and self.kind != "learned":
            position = torch.cat([torch.zeros_like(position[:, :1]), position], dim=1)  # (1, T, D)
        if num_patches is None or num_patches == self.grid[0] * self.grid[1]:
            return position
        return resize_positions(position, self.grid, grid_of_same_shape(self.grid, num_patches))


class TokenSequence(Positions):
    """Build the encoder's input from patch embeddings (equation 1).

    .. math:: z_0 = [x_\\text{class};\\, x_p^1 E;\\, \\dots;\\, x_p^N E] + E_\\text{pos}

    Args:
        config: uses ``class_token``, ``position``, ``grid``, ``dim`` and ``dropout``.
    """

    def __init__(self, config: ViTConfig) -> None:
        super().__init__(config)
        if config.class_token:
            self.class_token = nn.Parameter(torch.zeros(1, 1, config.dim))  # as in the reference code
        self.dropout = nn.Dropout(config.dropout)

    def forward(self, embeddings: Tensor) -> Tensor:
        """Map patch embeddings (B, N, D) to tokens z_0 (B, T, D)."""
        tokens = embeddings
        if self.class_token is not None:
            # Not len(): an exported model takes batches of any size.
            first = self.class_token.to(embeddings.dtype).expand(embeddings.shape[0], -1, -1)  # (B, 1, D)
            tokens = torch.cat([first, embeddings], dim=1)  # (B, T, D)
        position = self.position_embedding(embeddings.shape[1], embeddings.device)
        if position is not None:
            tokens = tokens + position.to(tokens.dtype)  # under autocast all tokens stay in the lower type
        return self.dropout(tokens)
