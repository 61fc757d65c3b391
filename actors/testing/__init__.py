"""Proofs for your own jobs: run them on a virtual clock, crash them at every commit.

In an ordinary test function, not an async one::

    def test_settlement_survives_every_crash() -> None:
        crash_at_every_commit(Scenario(settlement, parameters={"day": "2026-11-30"}))
"""

from .crashes import Sweep as Sweep
from .crashes import crash_at_every_commit as crash_at_every_commit
from .equivalence import Ending as Ending
from .equivalence import EquivalenceError as EquivalenceError
from .equivalence import StepEnding as StepEnding
from .faults import Fault as Fault
from .faults import Variant as Variant
from .scenario import Run as Run
from .scenario import Scenario as Scenario
from .scenario import StoreKind as StoreKind

__all__ = [
    "Ending",
    "EquivalenceError",
    "Fault",
    "Run",
    "Scenario",
    "StepEnding",
    "StoreKind",
    "Sweep",
    "Variant",
    "crash_at_every_commit",
]
