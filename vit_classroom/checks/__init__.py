"""Judge a reader's own function or class, and name the mistake when there is one.

Every check draws random input, works out what must come of it before the reader's code runs, and prints one
line when values and gradients agree. When they do not, the result is also compared with the results of
well-known mistakes, so that the message can say which one it was. Chapters, tests and graders call the same
checks. Every check takes `seed=N`, too, which draws the same inputs again; without it they are new each time.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
