"""The sweep: a row of schedules, each of which a scenario has to survive."""

import logging
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from random import Random
from typing import TypeAlias

from attrs import frozen

from .proof import Proof
from .scenario import Run, Scenario
from .schedules import Schedule, parse


@frozen(kw_only=True)
class Sweep:
    """What was tried: all of it came to the undisturbed end; printed as one line."""

    name: str
    """Of the function."""
    job: str
    store: str
    seed: int
    """By which the points were drawn, unless all were tried."""
    commits: tuple[str, ...]
    """Of the undisturbed run, in words."""
    steps: int
    """How many task steps the undisturbed run has."""
    points: int
    """How many disturbed runs there were."""
    possible: int | None
    """How many there are; None where they have no end."""

    def __str__(self) -> str:
        tried = f"{self.points} point{'s' * (self.points != 1)}"
        if self.possible is None:
            tried += ", drawn by the seed,"
        elif self.points < self.possible:
            tried += f" of {self.possible}, drawn by the seed,"
        return (
            f"{self.name}: job {self.job!r} on {self.store}, seed {self.seed}: {tried} "
            f"came to the undisturbed end ({len(self.commits)} commits, "
            f"{self.steps} task steps)"
        )


Sweeper: TypeAlias = Callable[[Scenario], Sweep]
"""What the pytest fixture ``triolet_sweep`` gives."""


def swept(
    name: str,
    scenario: Scenario,
    schedules: Callable[[Run], Sequence[Schedule]],
    points: int | None,
    only: str | None,
) -> Sweep:
    """Give a scenario a row of schedules, which depends on its undisturbed run."""
    demand_some("points", points)
    if only is not None:
        return replay(scenario, only)
    with proving(scenario) as proof:
        every = schedules(proof.undisturbed)
        chosen = _some(every, points, scenario.seed)
        for schedule in chosen:
            proof.demand(schedule)
    return sweep_of(name, proof, scenario.seed, len(chosen), len(every))


def sweep_of(
    name: str, proof: Proof, seed: int, points: int, possible: int | None
) -> Sweep:
    """Put in words what a proof was given."""
    return Sweep(
        name=name,
        job=proof.scenario.name,
        store=proof.scenario.store,
        seed=seed,
        commits=proof.undisturbed.commits,
        steps=len(proof.undisturbed.steps),
        points=points,
        possible=possible,
    )


def replay(scenario: Scenario, line: str) -> Sweep:
    """Run a scenario with one schedule.

    Args:
        scenario: What is run; a schedule means the same only with the same seed.
        line: The schedule, such as ``"cancel@17,crash-after@3"``, from the message of an
            `EquivalenceError`.

    Raises:
        EquivalenceError: It came to another end.
        ScheduleError: The line cannot be read, or something in it never takes place.
    """
    schedule = parse(line)
    with proving(scenario) as proof:
        proof.demand_exactly(schedule)
    return sweep_of("replay", proof, scenario.seed, 1, 1)


def demand_some(what: str, number: int | None) -> None:
    """Refuse to try nothing.

    Raises:
        ValueError: With *what* as its subject.
    """
    if number is not None and number < 1:
        raise ValueError(f"{what} must be at least 1, not {number}")


def _some(
    every: Sequence[Schedule], points: int | None, seed: int
) -> Sequence[Schedule]:
    if points is None or points >= len(every):
        return every
    chosen = Random(seed).sample(range(len(every)), points)
    return [every[place] for place in sorted(chosen)]


@contextmanager
def proving(scenario: Scenario) -> Iterator[Proof]:
    """Play the undisturbed run, and keep quiet about the others."""
    proof = Proof(scenario)
    with _quietly():
        yield proof


@contextmanager
def _quietly() -> Iterator[None]:
    """Keep what dying processes log off standard error, unless logging is set up."""
    ours = logging.getLogger("triolet")
    heard = logging.NullHandler()
    ours.addHandler(heard)
    try:
        yield
    finally:
        ours.removeHandler(heard)
