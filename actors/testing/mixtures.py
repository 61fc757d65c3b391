"""Mixtures: several disturbances in one run, drawn by a seed."""

from collections import Counter
from random import Random

from .faults import Fault
from .interruptions import How
from .scenario import Disturbance, Run, Scenario
from .schedules import KINDS, Schedule, disturbance
from .sweep import Sweep, demand_some, proving, replay, sweep_of

ROUNDS = 20
DISTURBANCES_MAX = 4
"""In one round."""


def disturb(
    scenario: Scenario,
    *,
    seed: int | None = None,
    rounds: int = ROUNDS,
    only: str | None = None,
) -> Sweep:
    """Prove that several disturbances in one run change nothing of its end.

    Each round draws one to four disturbances: crashes, lost answers, cancellations,
    stops and shutdowns. They hit one launch after another, or one launch while it is on
    its way out; the last launch is undisturbed.

    Args:
        scenario: What is run.
        seed: Of the schedules; by default the scenario's.
        rounds: How many schedules are drawn.
        only: As for `crash_at_every_commit`.

    Raises:
        EquivalenceError: As from `crash_at_every_commit`.
        ScheduleError: As from `crash_at_every_commit`.
    """
    demand_some("rounds", rounds)
    if only is not None:
        return replay(scenario, only)
    seed = scenario.seed if seed is None else seed
    random = Random(seed)
    with proving(scenario) as proof:
        for number in range(1, rounds + 1):
            schedule = _drawn(random, proof.undisturbed)
            proof.demand(schedule, f"disturb(seed={seed}), round {number}")
    return sweep_of("disturb", proof, seed, rounds, None)


def _drawn(random: Random, run: Run) -> Schedule:
    """Draw a schedule; each disturbance comes some time after the one before it."""
    latest: Counter[type[Disturbance]] = Counter()
    drawn: list[Disturbance] = []
    for _ in range(random.randint(1, DISTURBANCES_MAX)):
        kind = random.choice(list(KINDS.values()))
        instants = run.steps if isinstance(kind, How) else run.commits
        one = disturbance(kind, random.randint(1, len(instants)))
        latest[type(one)] += one.number
        drawn.append(one.moved(latest[type(one)]))
    return tuple(sorted(drawn, key=_place))


def _place(one: Disturbance) -> tuple[bool, int]:
    return isinstance(one, Fault), one.number
