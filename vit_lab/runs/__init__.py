"""Runs that are kept: their folder, resuming to the bit, and several processes."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach(__name__, submod_attrs={"run": ["train"]})
