"""The laboratory: long, many and large runs, their results, and the command `vit`."""

import lazy_loader

from vit_from_scratch.data.config import OWN_SOURCES

OWN_SOURCES["shards:"] = "vit_lab.shards:open_shards"

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
