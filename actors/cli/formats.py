"""How numbers, times, durations and results are written for people."""

from collections.abc import Iterable
from datetime import UTC, datetime

from ...storage.model.errors import listed
from ...storage.model.execution import Counts, Failure
from ...storage.model.parameters import (
    RESERVED_PREFIX,
    JobParameter,
    ParameterKind,
    ParameterSet,
)
from ...storage.model.status import BatchStatus, FailureCategory

MICROS = 1_000_000
OWNER_DIED = "owner_died"
"""The code of a failure that closed what a dead process left."""
NEVER_AGAIN = "{} not restartable, so no launch continues it: 'triolet run ... --new' runs it anew"
"""What is said of a job or a step; filled in with is or are."""


def instant(micros: int | None) -> str:
    """Write an instant of the store's clock: to the second, UTC."""
    if micros is None:
        return "-"
    when = datetime.fromtimestamp(micros / MICROS, UTC)
    return when.strftime("%Y-%m-%d %H:%M:%S")


def duration(seconds: float) -> str:
    """Write a length of time: ``0.4 s``, ``12 s``, ``3:07``, ``1:02:03``."""
    if round(seconds, 1) < 10:
        return f"{seconds:.1f} s"
    if round(seconds) < 60:
        return f"{seconds:.0f} s"
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    if hours:
        return f"{hours}:{minutes:02}:{rest:02}"
    return f"{minutes}:{rest:02}"


def counted(number: int, noun: str) -> str:
    """Write how many: ``1 item``, ``2,000 items``."""
    return f"{number:,} {noun}" + ("" if number == 1 else "s")


def exit_text(status: BatchStatus, code: str) -> str:
    """Write an exit code that tells more than the status."""
    return "" if code == status.value else str(code)


def counts_text(counts: Counts) -> str:
    """Write the counts of a chunk step; nothing for a step without items."""
    if not any(counts.all()):
        return ""
    parts = [f"{counts.read:,} read", f"{counts.written:,} written"]
    if counts.filtered:
        parts.append(f"{counts.filtered:,} filtered")
    parts.append(counted(counts.committed, "chunk"))
    if counts.rolled_back:
        parts.append(f"{counts.rolled_back:,} rolled back")
    return ", ".join(parts)


def elapsed(began: int | None, ended: int | None) -> str:
    """Write how long something took, by the store's clock."""
    if began is None or ended is None:
        return "-"
    return duration((ended - began) / MICROS)


def took(began: int | None, ended: int | None, failure: Failure | None) -> str:
    """Write how long something took that has ended, where that is known.

    Args:
        began: By the store's clock.
        ended: The same; for what others closed, it is only when they did.
        failure: Why it failed.
    """
    match failure:
        case Failure(category=FailureCategory.STALE_RECOVERED, code=code):
            return "died" if code == OWNER_DIED else "-"
        case Failure(category=FailureCategory.UNKNOWN_COMMIT):
            return "-"
    return elapsed(began, ended)


def table(rows: list[list[str]]) -> list[str]:
    """Align rows of words in columns; the first row is the head."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return [
        "  ".join(
            word.ljust(width) for word, width in zip(row, widths, strict=True)
        ).rstrip()
        for row in rows
    ]


def value_text(parameter: JobParameter) -> str:
    """Write a parameter's value; that of a secret one is not even stored."""
    if parameter.secret:
        return "***"
    if parameter.kind is ParameterKind.BOOL:
        return "true" if parameter.value else "false"
    return str(parameter.value)


PAIRS_MAX = 50
"""Characters of parameters that a line of a list has room for."""


def pairs_text(parameters: ParameterSet) -> str:
    """Write what tells instances of one job apart, in one line: ``day=1 region=eu``."""
    pairs = (
        f"{one.name}={value_text(one)}"
        for one in parameters
        if one.identifying and not one.name.startswith(RESERVED_PREFIX)
    )
    text = " ".join(" ".join(pairs).split())
    return text if len(text) <= PAIRS_MAX else text[: PAIRS_MAX - 3] + "..."


def never_again(nodes: Iterable[str]) -> str:
    """Say of steps which began that nothing can continue them."""
    names = list(dict.fromkeys(nodes))
    one = len(names) == 1
    steps = "step" if one else "steps"
    return f"{steps} {listed(names)} " + NEVER_AGAIN.format("is" if one else "are")
