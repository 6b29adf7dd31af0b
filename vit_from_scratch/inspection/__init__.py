"""Part III, look inside: attention maps, distances, positions, filters, the tokens' path."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
