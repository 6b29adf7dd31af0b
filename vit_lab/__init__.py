"""The laboratory: long, many and large runs, their results, and the command `vit`."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
