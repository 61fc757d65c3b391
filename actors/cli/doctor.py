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
from ...storage.model.status import BatchStatus
from ..job.operating import recovery_of
from ..job.proposing import Proposal, propose
from ..kernel.liveness import is_alive
from ..plan.barring import is_barred
from .answers import Answer
from .asking import ask, carry_out
from .confirming import confirm
from .formats import MICROS, duration, instant, never_again
from .operating import Asked
from .partitioning import ShownPartition, called_by_key, open_lines, partitions_in
from .stored import stored_plan


@frozen
class Finding:
    """An execution that has not ended, and what is proposed."""

    seen: Unresolved
    alive: bool | None
    proposal: Proposal
    partitions: tuple[ShownPartition, ...] = ()
    """Instead of the steps of their workers, where it is shown to people."""
    once_only: tuple[str, ...] = ()
    """Nodes that have begun and must not run again, so that no launch continues it."""


@frozen
class Settled:
    """What settling one execution came to."""

    execution_id: int
    outcome: Operated | Rejection
    once_only: tuple[str, ...] = ()
    """Nodes that must not run again, so that no launch continues it."""


def diagnose(url: str) -> Answer:
    """List what has not ended, and propose what mends it.

    Raises:
        StoreError: There is no usable store.
    """
    diagnosis = ask(url, Diagnose())
    findings = [_shown(url, _finding(url, seen)) for seen in diagnosis.unresolved]
    return Answer(findings, _lines(findings, diagnosis))


def settle(url: str, asked: Asked, *, yes: bool) -> Answer:
    """Take over what owners left that are proved dead; nothing is started.

    Raises:
        ConfirmationMissing: Nobody said yes.
        StoreError: There is no usable store.
    """
    findings = [_finding(url, seen) for seen in ask(url, Diagnose()).unresolved]
    safe = [one for one in findings if one.proposal is Proposal.TAKE_OVER]
    if not safe:
        return Answer([], ["there is nothing to settle"])
    numbers = ", ".join(str(one.seen.execution.id) for one in safe)
    confirm(f"take over what dead processes left: execution {numbers}", yes)
    settled = [_settle(url, one, asked) for one in safe]
    return Answer(settled, map(_settled_line, settled))


def _settle(url: str, one: Finding, asked: Asked) -> Settled:
    seen = one.seen
    words = evolve(asked.words, operation_id=uuid4().hex)
    request = recovery_of(seen, Directive.TAKE_OVER, words)
    try:
        done = carry_out(url, request)
    except Rejection as refused:
        return Settled(seen.execution.id, refused)
    return Settled(seen.execution.id, done, one.once_only)


def _settled_line(one: Settled) -> str:
    if isinstance(one.outcome, Rejection):
        return f"execution {one.execution_id} was left alone: {one.outcome}"
    status = one.outcome.operation.result
    head = f"execution {one.execution_id} is {status}"
    if one.once_only:
        return f"{head}: {never_again(one.once_only)}"
    # Whether the job may be attempted again is said by each launch, not by the store.
    return f"{head}: the next launch continues it, unless the job is not restartable"


def _finding(url: str, seen: Unresolved) -> Finding:
    alive = is_alive(seen.owner)
    plan = stored_plan(url, seen.instance, seen.execution)
    once = (
        node
        for node, partition in _begun(url, seen)
        if plan is not None and is_barred(plan, node, partition=partition)
    )
    return Finding(
        seen, alive, propose(seen, alive), once_only=tuple(dict.fromkeys(once))
    )


def _begun(url: str, seen: Unresolved) -> Iterator[tuple[str, bool]]:
    """Give the nodes of steps that did not complete, and whether it is a partition."""
    detail = ask(url, ShowExecution(seen.execution.id))
    for step in detail.steps:
        named = called_by_key(step, detail.partitions)
        if named is not None and step.status is not BatchStatus.COMPLETED:
            yield named.node, named is not step


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
    if one.once_only and one.proposal is not Proposal.LEAVE:
        yield f"  {never_again(one.once_only)}"


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
