"""``triolet stop``, ``abandon`` and ``recover``: what operators do to one execution."""

import getpass
import os
import time
from collections.abc import Iterator
from uuid import uuid4

from attrs import frozen

from ...storage.commands import (
    Abandon,
    Diagnose,
    ExecutionDetail,
    Operated,
    OperatorRequest,
    RequestStop,
    ShowExecution,
    Unresolved,
)
from ...storage.model.errors import TrioletError, error
from ...storage.model.operation import Directive
from ...storage.model.status import BatchStatus
from ..job.operating import Words, recovery_of, recovery_of_ended
from ..job.proposing import Proposal, propose
from ..kernel.liveness import is_alive
from .answers import Answer
from .asking import ask, carry_out
from .confirming import confirm
from .failing import UsageInvalid
from .partitioning import without_workers

WAIT_SECS = 0.2
"""Between two looks at an execution that is being stopped."""


@error
class OwnerGone(TrioletError):
    """Nobody is there who would take the stop in."""

    code = "owner_gone"
    execution_id: int

    def __str__(self) -> str:
        """Say in one sentence what is wrong, where, and how to mend it."""
        return (
            f"the stop of execution {self.execution_id} is on record, but nobody works "
            "on it any more: see 'triolet doctor'"
        )


@frozen(kw_only=True)
class Asked:
    """Who asks on the command line, why, and under which operation id."""

    actor: str | None = None
    reason: str | None = None
    operation_id: str | None = None

    @property
    def words(self) -> Words:
        """Complete what was left out."""
        return Words(
            actor=self.actor or system_user(),
            operation_id=self.operation_id or uuid4().hex,
            reason=self.reason,
        )


def system_user() -> str:
    """Name the user of the operating system."""
    try:
        return getpass.getuser()
    except (ImportError, KeyError, OSError):
        # A user without a name, as in many containers.
        return f"uid {os.getuid()}"


def stop(url: str, execution_id: int, asked: Asked, *, wait: bool) -> Answer:
    """Ask for an execution's stop, and perhaps wait for its end.

    Raises:
        OwnerGone: While waiting: nobody works on the execution any more.
        TrioletError: Whatever refused the request, or the store failed.
    """
    words = asked.words
    request = RequestStop(
        execution_id=execution_id,
        actor=words.actor,
        operation_id=words.operation_id,
        reason=words.reason,
    )
    done = carry_out(url, request)
    if wait:
        detail = _ended(url, execution_id)
        status = detail.execution.status
        line = f"execution {execution_id} is {status}"
        return Answer(without_workers(detail), [line])
    return Answer(done, _stop_lines(done, gone=_is_orphan(url, execution_id)))


def _ended(url: str, execution_id: int) -> ExecutionDetail:
    """Wait for the end of an execution, or until nobody is there to bring it about."""
    while True:
        if _is_orphan(url, execution_id):
            raise OwnerGone(execution_id)
        detail = ask(url, ShowExecution(execution_id))
        if detail.execution.status.finished:
            return detail
        time.sleep(WAIT_SECS)


def _is_orphan(url: str, execution_id: int) -> bool:
    """Tell whether an execution has not ended, and nobody works on it any more."""
    found = ask(url, Diagnose(execution_id)).unresolved
    if not found:
        return False
    proposal = propose(found[0], is_alive(found[0].owner))
    return proposal not in (Proposal.LEAVE, Proposal.WAIT)


def _stop_lines(done: Operated, *, gone: bool) -> Iterator[str]:
    operation = done.operation
    status = operation.result
    if gone:
        yield str(OwnerGone(operation.execution_id))
    elif status in (BatchStatus.STARTING, BatchStatus.STARTED):
        yield (
            f"the stop of execution {operation.execution_id} was requested: the process "
            "that runs it will see it within seconds"
        )
    elif status is BatchStatus.STOPPING:
        yield f"execution {operation.execution_id} is STOPPING already"
    else:
        yield f"execution {operation.execution_id} is {status}: there is nothing to stop"


def abandon(url: str, execution_id: int, asked: Asked, *, yes: bool) -> Answer:
    """Close the instance of a finished execution for good.

    Raises:
        ConfirmationMissing: Nobody said yes.
        TrioletError: Whatever refused the request, or the store failed.
    """
    detail = ask(url, ShowExecution(execution_id))
    execution = detail.execution
    words = asked.words
    request = Abandon(
        execution_id=execution_id,
        actor=words.actor,
        operation_id=words.operation_id,
        reason=words.reason,
        expected_version=execution.version,
    )
    if execution.status.restartable:
        confirm(
            f"execution {execution_id} of job {detail.instance.job} is "
            f"{execution.status}; abandon it, so that it is never continued",
            yes,
        )
    return _done(carry_out(url, request))


def recover(
    url: str, execution_id: int, directive: Directive, asked: Asked, *, yes: bool
) -> Answer:
    """Decide what an execution came to that nobody works on any more.

    Raises:
        ConfirmationMissing: Nobody said yes.
        TrioletError: Whatever refused the request, or the store failed.
    """
    found = ask(url, Diagnose(execution_id)).unresolved
    if not found:
        detail = ask(url, ShowExecution(execution_id))
        version = detail.execution.version
        refused: OperatorRequest = recovery_of_ended(
            execution_id, version, directive, asked.words
        )
        return _done(carry_out(url, refused))
    (seen,) = found
    request = recovery_of(seen, directive, asked.words)
    confirm(_question(seen, directive), yes)
    return _done(carry_out(url, request))


def _question(seen: Unresolved, directive: Directive) -> str:
    execution = seen.execution
    effect = (
        "; what its last commit did is not known: make sure that you know it"
        if seen.evidence.unknown_commit
        else ""
    )
    do = (
        "mark it FAILED, so that a launch may continue it"
        if directive is Directive.MARK_FAILED
        else "abandon it, so that it is never continued"
    )
    return (
        f"execution {execution.id} of job {seen.instance.job} is {execution.status}"
        f"{effect}; {do}"
    )


def _done(done: Operated) -> Answer:
    operation = done.operation
    again = ", as before" if done.replayed else ""
    line = f"execution {operation.execution_id} is {operation.result}{again}"
    return Answer(done, [line])


def directive_of(mark_failed: bool, abandon: bool) -> Directive:
    """Choose between the two decisions.

    Raises:
        UsageInvalid: None was chosen, or both.
    """
    if mark_failed is abandon:
        raise UsageInvalid("choose one of --mark-failed and --abandon")
    return Directive.MARK_FAILED if mark_failed else Directive.ABANDON
