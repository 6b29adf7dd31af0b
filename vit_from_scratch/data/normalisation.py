"""How bytes become the numbers that a model takes."""

from dataclasses import dataclass

import torch
from torch import Tensor


@dataclass(frozen=True)
class Normalisation:
    """Map bytes to the numbers that a model takes: (image / 255 - mean) / std, for each channel.

    The mean and deviation of 0.5 map bytes to [-1, 1], as the paper's reference code does.

    Attributes:
        mean: one value a channel, or one for all.
        std: likewise.
    """

    mean: tuple[float, ...] = (0.5,)
    std: tuple[float, ...] = (0.5,)

    def __call__(self, images: Tensor) -> Tensor:
        """Normalise images (B, C, H, W), uint8 or floats from 0 to 255, to floats of the same shape."""
        mean = torch.tensor(self.mean, device=images.device).view(-1, 1, 1) * 255
        std = torch.tensor(self.std, device=images.device).view(-1, 1, 1) * 255
        return (images - mean) / std

    def undo(self, images: Tensor) -> Tensor:
        """Map normalised images (B, C, H, W) back to [0, 1], for figures."""
        mean = torch.tensor(self.mean, device=images.device).view(-1, 1, 1)
        return (images * torch.tensor(self.std, device=images.device).view(-1, 1, 1) + mean).clamp(0, 1)


NORMALISATIONS = {
    "half": Normalisation(),
    "imagenet": Normalisation((0.485, 0.456, 0.406), (0.229, 0.224, 0.225)),
}
"""Those in use, by name: to [-1, 1], and by the mean and deviation of each colour over ImageNet."""
