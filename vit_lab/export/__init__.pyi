from .exports import export_model
from .to_timm import to_timm

__all__ = ["export_model", "to_timm"]
