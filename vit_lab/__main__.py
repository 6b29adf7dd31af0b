"""`python -m vit_lab` is the command `vit`."""

import sys

from vit_lab.cli import main

sys.exit(main())
