"""Hypothesis profiles: random at home, reproducible in continuous integration.

Neither has a deadline: a busy machine must not fail a test.
"""

import os

from hypothesis import settings

settings.register_profile("home", deadline=None, print_blob=True)
settings.register_profile("ci", deadline=None, derandomize=True, print_blob=True)
settings.load_profile("ci" if os.environ.get("CI") else "home")
