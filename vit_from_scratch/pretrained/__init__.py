"""Trained weights by name."""

from vit_from_scratch.pretrained.registry import load_pretrained

__all__ = ["load_pretrained"]
