"""``python -m triolet.actors.cli`` is the command ``triolet``."""

import sys

from . import main

sys.exit(main())
