"""``python -m triolet.actors.cli`` is the command ``triolet``."""

import sys

from .app import main

sys.exit(main())
