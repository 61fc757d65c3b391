"""Why a flow fails although no user code raised: the failures that routing makes."""

from collections.abc import Callable

from attrs import evolve, frozen

from ...storage.commands import StartLimitReached
from ...storage.model.errors import listed
from ...storage.model.execution import Failure
from ...storage.model.partition import PartitionExecution
from ...storage.model.status import FailureCategory


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

    def worker_limited(
        self, refusal: StartLimitReached, node: str, partition: PartitionExecution
    ) -> Failure:
        """A partition's worker may not be started again; its own name says nothing."""
        said = StartLimitReached(
            f"{node}, partition {partition.ordinal}", refusal.limit
        )
        return Failure(
            FailureCategory.ILLEGAL_TRANSITION,
            self.new_id(),
            refusal.code,
            node,
            message=str(said),
        )

    def limited(self, refusal: StartLimitReached) -> Failure:
        """The step may not be started again."""
        return Failure(
            FailureCategory.ILLEGAL_TRANSITION,
            self.new_id(),
            refusal.code,
            refusal.node,
            message=str(refusal),
        )
