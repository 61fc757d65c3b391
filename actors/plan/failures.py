"""Why a flow fails although no user code raised: the failures that routing makes."""

from collections.abc import Callable
from typing import ClassVar, TypeAlias

from attrs import evolve, frozen

from ...storage.commands import StartLimitReached
from ...storage.model.errors import listed
from ...storage.model.execution import Failure
from ...storage.model.partition import PartitionExecution
from ...storage.model.status import BatchStatus, FailureCategory


@frozen
class StepNotRestartable:
    """The step began in an earlier attempt, and must not be run again."""

    code: ClassVar = "step_not_restartable"
    node: str
    status: BatchStatus

    def __str__(self) -> str:
        """Say in one sentence what is wrong, where, and how to mend it."""
        return (
            f"step {self.node!r} began in an earlier attempt, is {self.status} and not "
            "restartable: run the job anew with 'triolet run ... --new' (anew=True)"
        )


@frozen
class VisitLimitReached:
    """The flow leads to a node more often than its limit allows."""

    code: ClassVar = "visit_limit_reached"
    node: str
    limit: int

    def __str__(self) -> str:
        """Say in one sentence what is wrong, where, and how to mend it."""
        times = "once" if self.limit == 1 else f"{self.limit} times"
        return (
            f"the flow has come to {self.node!r} {times}, which is its visit_limit, and "
            "leads there again: run the job anew with 'triolet run ... --new' "
            "(anew=True); a higher limit is a changed definition, which only a new "
            "instance takes"
        )


_SUFFIXES = {1: "st", 2: "nd", 3: "rd"}
StartRefusal: TypeAlias = StartLimitReached | StepNotRestartable


@frozen
class FlowFailures:
    """Makes the failures of one attempt; ids come from outside."""

    new_id: Callable[[], int]

    def fail_terminal(self, source: str, failure: Failure | None) -> Failure:
        """A transition led to FAIL; the step's own failure tells more, if it has one."""
        if failure is not None:
            return evolve(failure, id=self.new_id())
        return Failure(
            FailureCategory.USER_COMPONENT,
            self.new_id(),
            "fail_terminal",
            source,
            message=f"{source!r} led to FAIL",
        )

    def unmapped(self, node: str, code: str, patterns: tuple[str, ...]) -> Failure:
        """No pattern of the node matches its exit code."""
        # Either may be an enum's member, whose repr is for programmers.
        rules = listed(repr(str(pattern)) for pattern in patterns)
        return Failure(
            FailureCategory.INVALID_DEFINITION,
            self.new_id(),
            "unmapped_exit",
            node,
            message=f"{node!r} ended with exit code {str(code)!r}; "
            f"it has rules for {rules}",
        )

    def worker_not_started(
        self, refusal: StartRefusal, node: str, partition: PartitionExecution
    ) -> Failure:
        """A partition's worker may not be started; its own name says nothing."""
        said: StartRefusal
        match refusal:
            case StartLimitReached(limit=limit):
                said = StartLimitReached(node, limit)
            case StepNotRestartable(status=status):
                said = StepNotRestartable(node, status)
        # Not by its key, which may be anything: nothing is masked here.
        which = f"the {_nth(partition.ordinal)} partition"
        return evolve(self.not_started(said), message=f"{which} of {said}")

    def not_started(self, refusal: StartRefusal | VisitLimitReached) -> Failure:
        """The node may not be entered again."""
        return Failure(
            FailureCategory.ILLEGAL_TRANSITION,
            self.new_id(),
            refusal.code,
            refusal.node,
            message=str(refusal),
        )


def _nth(number: int) -> str:
    teens = number % 100 in (11, 12, 13)
    return f"{number}{'th' if teens else _SUFFIXES.get(number % 10, 'th')}"
