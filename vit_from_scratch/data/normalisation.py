"""How bytes become the numbers that a model takes."""

from dataclasses import dataclass

import torch
from torch import Tensor

from vit_from_scratch.errors import InputError


@dataclass(frozen=True)
class Normalisation:
    """Map bytes to the numbers that a model takes: (image / 255 - mean) / std, for each channel or for all.

    A mean and standard deviation of 0.5 map bytes to [-1, 1], as the paper's reference code does.
    """

    mean: tuple[float, ...] = (0.5,)
    std: tuple[float, ...] = (0.5,)

    def __call__(self, images: Tensor) -> Tensor:
        """Normalise images (B, C, H, W), uint8 or floats from 0 to 255, to floats of the same shape.

        Raises:
            InputError: on a CPU, floats from 0 to 1, as photos have them in a figure.
        """
        self.check(images)
        return self.scaled(images)

    @staticmethod
    def check(images: Tensor) -> None:
        """Raise an `InputError` for floats from 0 to 1 on a CPU; a GPU would be waited for."""
        readable = images.device.type == "cpu" and images.numel() > 0
        if readable and images.is_floating_point() and 0 < (largest := images.max().item()) <= 1:
            raise InputError(
                f"images of floats up to {largest:.3g}: expected bytes, or floats from 0 to 255. Multiply "
                "those from 0 to 1 by 255."
            )

    def scaled(self, images: Tensor) -> Tensor:
        """Normalise without a check: (B, C, H, W), uint8, or floats from 0 to 255 if they were changed."""
        mean, std = self._columns(images.device)
        return (images - mean * 255) / (std * 255)

    def undo(self, images: Tensor) -> Tensor:
        """Map normalised images (B, C, H, W) back to [0, 1], for figures."""
        mean, std = self._columns(images.device)
        return (images * std + mean).clamp(0, 1)

    def _columns(self, device: torch.device) -> list[Tensor]:
        """Return (C, 1, 1) each, filled in there: for a copy a GPU would finish all its work first."""
        return [
            torch.cat([torch.full((1, 1, 1), value, device=device) for value in values])
            for values in (self.mean, self.std)
        ]


NORMALISATIONS = {
    "half": Normalisation(),
    "imagenet": Normalisation((0.485, 0.456, 0.406), (0.229, 0.224, 0.225)),
}
"""Those in use, by name: to [-1, 1], and by each colour's mean and standard deviation over ImageNet."""
