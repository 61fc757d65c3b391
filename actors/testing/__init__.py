"""Proofs for your own jobs: disturb them at every instant, on a virtual clock.

In an ordinary test function, not an async one::

    def test_settlement_survives_every_crash() -> None:
        crash_at_every_commit(Scenario(settlement, parameters={"day": "2026-11-30"}))

With pytest, the fixture ``triolet_sweep`` makes a test of each of the sweeps::

    def test_settlement(triolet_sweep: Sweeper) -> None:
        triolet_sweep(Scenario(settlement, parameters={"day": "2026-11-30"}))

A name is imported when it is first used, so that the plugin costs pytest nothing.
"""

from ...storage.faces import lazy_face

# As in typing, whose import costs more than all the rest.
TYPE_CHECKING = False

if TYPE_CHECKING:
    from .checkpoints import cancel_at_every_checkpoint as cancel_at_every_checkpoint
    from .checkpoints import (
        shutdown_at_every_checkpoint as shutdown_at_every_checkpoint,
    )
    from .checkpoints import stop_at_every_checkpoint as stop_at_every_checkpoint
    from .crashes import crash_at_every_commit as crash_at_every_commit
    from .effects import business_effect as business_effect
    from .equivalence import Ending as Ending
    from .equivalence import EquivalenceError as EquivalenceError
    from .equivalence import StepEnding as StepEnding
    from .faults import Fault as Fault
    from .faults import Variant as Variant
    from .interruptions import How as How
    from .interruptions import Interruption as Interruption
    from .mixtures import disturb as disturb
    from .scenario import Interrupted as Interrupted
    from .scenario import Run as Run
    from .scenario import Scenario as Scenario
    from .schedules import ScheduleError as ScheduleError
    from .stage import StoreKind as StoreKind
    from .sweep import Sweep as Sweep
    from .sweep import Sweeper as Sweeper
    from .sweep import replay as replay

_HOMES = (
    ".effects",
    ".faults",
    ".interruptions",
    ".equivalence",
    ".stage",
    ".scenario",
    ".schedules",
    ".sweep",
    ".crashes",
    ".checkpoints",
    ".mixtures",
)
"""Where the names live, quick ones first; the first that has a name wins."""

__all__ = [
    "Ending",
    "EquivalenceError",
    "Fault",
    "How",
    "Interrupted",
    "Interruption",
    "Run",
    "Scenario",
    "ScheduleError",
    "StepEnding",
    "StoreKind",
    "Sweep",
    "Sweeper",
    "Variant",
    "business_effect",
    "cancel_at_every_checkpoint",
    "crash_at_every_commit",
    "disturb",
    "replay",
    "shutdown_at_every_checkpoint",
    "stop_at_every_checkpoint",
]

if not TYPE_CHECKING:
    __getattr__, __dir__ = lazy_face(__name__, _HOMES, __all__)
