"""Chapter 1: an image becomes a sequence of flattened patches, and each patch a vector."""

import math

import torch
from einops import rearrange
from torch import Tensor, nn

from vit_from_scratch.errors import InputError
from vit_from_scratch.inputs import require_tensor


def patchify(images: Tensor, patch_size: int) -> Tensor:
    """Cut images into square patches and flatten each one (section 3.1 of the paper).

    Patches come row by row, as one reads. Inside a patch the values run over rows, then columns,
    then channels, which is the order of the paper's :math:`x_p \\in \\mathbb{R}^{N \\times (P^2 C)}`.

    Args:
        images: (B, C, H, W), any type; (B, N, P^2 C) comes back, with N = (H / P) (W / P).
        patch_size: side P of a patch in pixels.

    Raises:
        InputError: if ``images`` is not a tensor of four axes, or P does not divide H and W.
    """
    require_tensor(images, "images", "(B, C, H, W)")
    if images.ndim != 4:
        raise InputError(
            f"images of shape {tuple(images.shape)}: expected four axes (B, C, H, W); "
            "give one image as image[None]."
        )
    height, width = images.shape[-2:]
    if patch_size < 1 or height % patch_size or width % patch_size:
        raise InputError(
            f"patch_size {patch_size} does not divide the image size {height} x {width}: "
            "expected a divisor of both sides; resize the images or change patch_size."
        )
    return rearrange(images, "b c (gh p1) (gw p2) -> b (gh gw) (p1 p2 c)", p1=patch_size, p2=patch_size)


def unpatchify(patches: Tensor, patch_size: int, grid: tuple[int, int]) -> Tensor:
    """Put flattened patches back into images (B, C, gh P, gw P): the inverse of :func:`patchify`.

    Args:
        patches: (B, N, P^2 C).
        patch_size: side P of a patch in pixels.
        grid: rows and columns (gh, gw) of the patch grid, with gh gw = N.

    Raises:
        InputError: if the sequence does not fill the grid, or a patch is not P x P of whole channels.
    """
    require_tensor(patches, "patches", "(B, N, P^2 C)")
    rows, columns = grid
    fits = patch_size >= 1 and patches.ndim == 3 and patches.shape[1] == rows * columns
    if not fits or patches.shape[2] % patch_size**2:
        raise InputError(
            f"patches of shape {tuple(patches.shape)}: expected (B, {rows * columns}, {patch_size**2} C) "
            f"for a grid of {rows} x {columns} and patch_size {patch_size}; check grid and patch_size."
        )
    return rearrange(
        patches, "b (gh gw) (p1 p2 c) -> b c (gh p1) (gw p2)", gh=rows, p1=patch_size, p2=patch_size
    )


def lecun_normal_(weight: Tensor) -> Tensor:
    """Fill (out, in) as Flax does: normal, of variance 1 / in, cut at two standard deviations; return it."""
    # Cutting at two standard deviations shrinks a normal to 0.8796 of its spread; divide to restore it.
    std = math.sqrt(1 / weight.shape[1]) / 0.87962566103423978
    return nn.init.trunc_normal_(weight, std=std, a=-2 * std, b=2 * std)


class PatchEmbedding(nn.Module):
    """Project every flattened patch to width D: the :math:`x_p E` of equation 1.

    One linear layer shared by all patches. A convolution with kernel and stride P computes the same.

    Args:
        patch_size: side P of a patch in pixels.
        channels: channels C of the images.
        dim: width D of the result.
    """

    def __init__(self, patch_size: int, channels: int, dim: int) -> None:
        super().__init__()
        self.patch_size = patch_size
        self.projection = nn.Linear(patch_size**2 * channels, dim)  # E
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """LeCun-normal E, variance 1 / (P^2 C), and bias 0, as in the reference code."""
        lecun_normal_(self.projection.weight)
        nn.init.zeros_(self.projection.bias)

    def forward(self, images: Tensor) -> Tensor:
        """Map images (B, C, H, W) to patch embeddings (B, N, D)."""
        patches = patchify(images, self.patch_size)  # (B, N, P^2 C)
        return self.projection(patches)  # (B, N, D)

    def as_convolution_weight(self) -> Tensor:
        """E in the layout of a convolution's kernel, (D, C, P, P): what to picture as filters."""
        weight, side = self.projection.weight.detach(), self.patch_size
        return rearrange(weight, "d (p1 p2 c) -> d c p1 p2", p1=side, p2=side)


def embedding_weight_from_convolution(kernel: Tensor) -> Tensor:
    """Turn a convolution's kernel (D, C, P, P) into the weight of :class:`PatchEmbedding`, (D, P^2 C)."""
    return torch.as_tensor(rearrange(kernel, "d c p1 p2 -> d (p1 p2 c)")).contiguous()
