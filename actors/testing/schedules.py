"""Schedules: what is done to one run, as values and as a line of text.

A line such as ``cancel@17,crash-after@3`` has one word for each disturbance. Numbers
count task steps, or commits, from 1 and over all launches of the run.
"""

from typing import TypeAlias

from .faults import Fault, Variant
from .interruptions import How, Interruption
from .scenario import Disturbance

Schedule: TypeAlias = tuple[Disturbance, ...]

KINDS: dict[str, How | Variant] = {
    "cancel": How.CANCEL,
    "cancel-launch": How.CANCEL_LAUNCH,
    "stop": How.STOP,
    "shutdown": How.SHUTDOWN,
    "crash-before": Variant.DIE_BEFORE,
    "crash-after": Variant.DIE_AFTER,
    "lose-applied": Variant.LOSE_ANSWER_APPLIED,
    "lose-unapplied": Variant.LOSE_ANSWER_UNAPPLIED,
}
WORDS = {kind: word for word, kind in KINDS.items()}


class ScheduleError(ValueError):
    """A line does not name a schedule that this scenario can be given."""


def disturbance(kind: How | Variant, number: int) -> Disturbance:
    """Make a disturbance of that kind."""
    if isinstance(kind, How):
        return Interruption(number, kind)
    return Fault(number, kind)


def line_of(schedule: Schedule) -> str:
    """Write a schedule as a line."""
    return ",".join(map(_word, schedule))


def _word(one: Disturbance) -> str:
    kind = one.how if isinstance(one, Interruption) else one.variant
    return f"{WORDS[kind]}@{one.number}"


def parse(line: str) -> Schedule:
    """Read a line.

    Raises:
        ScheduleError: It cannot be read.
    """
    return tuple(map(_parse, line.split(",")))


def _parse(text: str) -> Disturbance:
    word, _, number = text.strip().partition("@")
    if word not in KINDS or not (number.isascii() and number.isdigit() and int(number)):
        raise ScheduleError(
            f"{text.strip()!r} is no disturbance: write KIND@NUMBER, counted from 1, "
            f"where KIND is {', '.join(KINDS)}"
        )
    return disturbance(KINDS[word], int(number))


def in_words(schedule: Schedule) -> str:
    """Say what a schedule does."""
    return "; ".join(map(str, schedule)) or "nothing was disturbed"
