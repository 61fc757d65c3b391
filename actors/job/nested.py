"""What a step needs to run another job: how its child is opened, and what it then is."""

from collections.abc import Awaitable, Callable
from typing import Final, Protocol, TypeAlias

from attrs import frozen

from ...storage.model.errors import InternalError
from ...storage.model.execution import StepExecution
from ...storage.model.parameters import ParameterSet
from ..kernel.inspecting import ActorState
from ..kernel.stop import StopToken
from ..kernel.storage_actor import StorageActor
from ..plan.actions import LatestRow
from ..plan.compile import CompiledJob
from .context import payload_of
from .report import LaunchReport

CHILD_STATE: Final = "triolet.child"
"""The member of a step's state that names the job and the execution that it ran."""


@frozen
class RanChild:
    """Which execution a step ran."""

    job: str
    execution_id: int


def child_of(step: StepExecution | LatestRow) -> RanChild | None:
    """Tell which execution a step ran, once it has ended; None when it ran none."""
    if step.context is None or CHILD_STATE not in step.context:
        return None
    match payload_of(step.context, step.node).get(CHILD_STATE):
        case {"job": str(job), "execution_id": int(execution_id)}:
            return RanChild(job, execution_id)
    return None


@frozen(kw_only=True)
class ChildLaunch:
    """An attempt at a child."""

    job: CompiledJob
    parameters: ParameterSet
    """With its lineage."""
    store: StorageActor
    stop: StopToken
    """Of the step that runs it."""


class Child(Protocol):
    """A child whose attempt has begun."""

    async def run(self) -> LaunchReport:
        """Go through the job to its end; raises what a job execution raises."""

    def stop(self) -> None:
        """Ask it to come to an end; its report will say STOPPED."""

    def inspect(self) -> ActorState:
        """Show the actor as it is now."""


OpenChild: TypeAlias = Callable[[ChildLaunch], Awaitable[Child]]
"""Begins an attempt; raises what `open_execution` raises."""


async def no_child(launch: ChildLaunch) -> Child:
    """Stand in for a runtime that runs children.

    Raises:
        InternalError: Always.
    """
    raise InternalError(f"nobody runs job {launch.job.job!r} here")
