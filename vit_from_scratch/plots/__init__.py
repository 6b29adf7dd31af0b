"""Figures in one style: readable on a light and on a dark page, in grey, and by the colour-blind.

Backgrounds are transparent and texts mid-grey, so that one picture serves both themes. The colours are
near those of Okabe and Ito, never too pale on white or too dark on black. Every function draws on the Axes
it is given, or on new ones, and returns them. A `title` stands above, `titles` above each picture, and a
`size` is that of one picture, in inches.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
