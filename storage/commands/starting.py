"""A step execution that is to be created, and what came of it."""

from attrs import frozen

from ..model.errors import Rejection, error

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
            "already, which is its start_limit: run the job anew with --new (anew=True); "
            "a higher limit is a changed definition, which only a new instance takes"
        )
