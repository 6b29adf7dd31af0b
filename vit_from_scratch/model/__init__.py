"""Part I, build it: from pixels to logits, one file a chapter."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
