"""A step execution that is to be created, and what came of it."""

from attrs import frozen

from ..model.errors import InvalidValue, Rejection, error
from ..model.partition import PARTITIONS_MAX, CopiedPlan, NewPartition, PartitionRef

UNLIMITED = (1 << 32) - 1


@frozen(kw_only=True)
class NextStep:
    """A step execution to be created."""

    node: str
    visit: int = 1
    name: str
    limit: int = UNLIMITED
    """Highest number of rows that this node and visit may have in the instance."""
    inherit: int | None = None
    """Step execution of an earlier attempt whose counts and state are continued."""
    starting: bool = False
    """Created STARTING, because listeners run before it is STARTED."""
    plan: tuple[NewPartition, ...] | CopiedPlan | None = None
    """The partitions of a manager, made in the same transaction."""
    partition: PartitionRef | None = None
    """The pending partition that the new row's worker works on."""

    def __attrs_post_init__(self) -> None:
        if isinstance(self.plan, tuple):
            keys = {one.key for one in self.plan}
            if not 0 < len(keys) == len(self.plan) <= PARTITIONS_MAX:
                reason = f"must have 1 to {PARTITIONS_MAX} partitions with unique keys"
                raise InvalidValue(f"the plan of {self.node!r}", reason)


@frozen
class StepStarted:
    """The new row and when it came to be, by the store's clock.

    Which attempt at the node it is, the sender counts itself, from its snapshot.
    """

    step_id: int
    at: int


@error
class StartLimitReached(Rejection):
    """The step was started as often as its limit allows."""

    code = "start_limit_reached"
    node: str
    limit: int

    def __str__(self) -> str:
        times = "once" if self.limit == 1 else f"{self.limit} times"
        return (
            f"step {self.node!r} was started {times} in this job instance "
            "already, which is its start_limit: run the job anew with "
            "'triolet run ... --new' (anew=True); a higher limit is a changed "
            "definition, which only a new instance takes"
        )


@error
class PartitionStale(Rejection):
    """The partition is not pending, or another worker works on it."""

    code = "partition_stale"
    manager_id: int
    ordinal: int

    def __str__(self) -> str:
        return (
            f"partition {self.ordinal} of step execution {self.manager_id} is not as "
            "its worker believed"
        )


@error
class PlanUnknown(Rejection):
    """There is no plan of partitions to copy."""

    code = "plan_unknown"
    manager_id: int

    def __str__(self) -> str:
        return (
            f"step execution {self.manager_id} has no plan of partitions for this node"
        )
