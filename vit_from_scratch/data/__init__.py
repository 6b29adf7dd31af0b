"""Images: where they come from, data sets in memory and streamed, augmentation, normalisation."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
