"""`python -m vit_from_scratch` is the command `vit`."""

import sys

from vit_from_scratch.cli import main

sys.exit(main())
