"""``triolet doctor``: what has not ended, why, and what mends it."""

from collections.abc import Iterable, Iterator
from uuid import uuid4

from attrs import evolve, frozen

from ...storage.commands import (
    Diagnose,
    Diagnosis,
    Operated,
    ShowExecution,
    Unresolved,
)
from ...storage.model.errors import Rejection
from ...storage.model.operation import Directive
from ...storage.model.partition import is_worker
from ..job.operating import recovery_of
from ..job.proposing import Proposal, propose
from ..kernel.liveness import is_alive
from .answers import Answer
from .asking import ask, carry_out
from .confirming import confirm
from .formats import MICROS, duration, instant
from .operating import Asked
from .partitioning import ShownPartition, called_by_key, open_lines, partitions_in


@frozen
class Finding:
    """An execution that has not ended, and what is proposed."""

    seen: Unresolved
    alive: bool | None
    proposal: Proposal
    partitions: tuple[ShownPartition, ...] = ()
    """Instead of the steps of their workers, where it is shown to people."""


@frozen
class Settled:
    """What settling one execution came to."""

    execution_id: int
    outcome: Operated | Rejection


def diagnose(url: str) -> Answer:
    """List what has not ended, and propose what mends it.

    Raises:
        StoreError: There is no usable store.
    """
    diagnosis = ask(url, Diagnose())
    findings = [_shown(url, _finding(seen)) for seen in diagnosis.unresolved]
    return Answer(findings, _lines(findings, diagnosis))


def settle(url: str, asked: Asked, *, yes: bool) -> Answer:
    """Take over what owners left that are proved dead; nothing is started.

    Raises:
        ConfirmationMissing: Nobody said yes.
        StoreError: There is no usable store.
    """
    findings = [_finding(seen) for seen in ask(url, Diagnose()).unresolved]
    safe = [one for one in findings if one.proposal is Proposal.TAKE_OVER]
    if not safe:
        return Answer([], ["there is nothing to settle"])
    numbers = ", ".join(str(one.seen.execution.id) for one in safe)
    confirm(f"take over what dead processes left: execution {numbers}", yes)
    settled = [_settle(url, one.seen, asked) for one in safe]
    return Answer(settled, map(_settled_line, settled))


def _settle(url: str, seen: Unresolved, asked: Asked) -> Settled:
    words = evolve(asked.words, operation_id=uuid4().hex)
    request = recovery_of(seen, Directive.TAKE_OVER, words)
    try:
        return Settled(seen.execution.id, carry_out(url, request))
    except Rejection as refused:
        return Settled(seen.execution.id, refused)


def _settled_line(one: Settled) -> str:
    if isinstance(one.outcome, Rejection):
        return f"execution {one.execution_id} was left alone: {one.outcome}"
    status = one.outcome.operation.result
    return f"execution {one.execution_id} is {status}: the next launch continues it"


def _finding(seen: Unresolved) -> Finding:
    alive = is_alive(seen.owner)
    return Finding(seen, alive, propose(seen, alive))


def _shown(url: str, one: Finding) -> Finding:
    """Put partitions in the place of their workers, whose names tell nothing."""
    seen = one.seen
    steps = tuple(step for step in seen.steps if not is_worker(step.node))
    last = seen.evidence.step
    if len(steps) == len(seen.steps) and (last is None or not is_worker(last.node)):
        return one
    detail = ask(url, ShowExecution(seen.execution.id))
    named = None if last is None else called_by_key(last, detail.partitions)
    evidence = evolve(seen.evidence, step=named)
    return evolve(
        one,
        seen=evolve(seen, steps=steps, evidence=evidence),
        partitions=partitions_in(detail),
    )


def _lines(findings: Iterable[Finding], diagnosis: Diagnosis) -> Iterator[str]:
    for one in findings:
        yield from _finding_lines(one)
    if not diagnosis.unresolved:
        yield "every execution has ended: nothing is stuck"
    if diagnosis.more:
        yield "there are more"


def _finding_lines(one: Finding) -> Iterator[str]:
    seen = one.seen
    execution = seen.execution
    yield (
        f"execution {execution.id} of job {seen.instance.job}: {execution.status} "
        f"since {instant(execution.started_at)} UTC, attempt {execution.attempt}"
    )
    yield f"  owner: process {seen.owner.pid} on host {seen.owner.host}, " + _owner(one)
    if seen.stop is not None:
        yield f"  a stop was requested by {seen.stop.actor}"
    for step in seen.steps:
        yield f"  step {step.node}: {step.status}"
        yield from open_lines(one.partitions, step.node)
    yield f"  {one.proposal.value}" + _command(one)


def _owner(one: Finding) -> str:
    left = one.seen.lease_left / MICROS
    lease = f"its lease runs for {duration(left)}" if left else "its lease has run out"
    if one.alive is None:
        return f"of which nothing is known here; {lease}"
    return "which has died" if one.alive is False else f"which lives; {lease}"


def _command(one: Finding) -> str:
    number = one.seen.execution.id
    match one.proposal:
        case Proposal.TAKE_OVER:
            return ", or 'triolet doctor --settle' closes it"
        case Proposal.LAUNCH:
            return (
                f", or 'triolet recover {number} --mark-failed --reason WHY' closes it"
            )
        case Proposal.DECIDE:
            return (
                f": 'triolet recover {number} --reason WHY' with --mark-failed or "
                "--abandon"
            )
        case Proposal.LEAVE:
            return f"; 'triolet stop {number}' stops it"
        case Proposal.WAIT:
            return ""
