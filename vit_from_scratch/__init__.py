"""The Vision Transformer, one readable piece at a time.

Shapes are written as trailing comments, ``# (B, N, D)``, with these letters throughout:

====== =====================================================================
B      images in a batch
C      channels of an image
H, W   height and width of an image, in pixels
P      side of a square patch, in pixels
gh, gw rows and columns of the patch grid: gh = H / P, gw = W / P
N      patches of an image: N = gh gw
T      tokens of a sequence: T = N + 1 with a class token, else T = N
D      width of a token
h      heads
Dh     width of a head: Dh = D / h
M      hidden width of the MLP
L      layers (encoder blocks)
K      classes
====== =====================================================================

Equation, section and table numbers in docstrings are those of Dosovitskiy et al.,
"An Image is Worth 16x16 Words" (arXiv:2010.11929v2), called "the paper" everywhere.
"""

from importlib.metadata import version

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)

__version__ = version("vit-from-scratch")
