"""A child that runs: a job execution inside of a step of another one."""

from collections.abc import Callable
from contextlib import AbstractContextManager

from attrs import frozen

from ..kernel.inspecting import ActorState
from . import logs
from .report import LaunchReport
from .running import RunningJob


@frozen
class RunningChild:
    """A child, run by whoever runs its parent's step."""

    job: RunningJob
    listening: Callable[[RunningJob], AbstractContextManager[None]]
    """Has the mailbox read, and the execution known to its runtime."""

    async def run(self) -> LaunchReport:
        """Go through the job to its end; see `JobExecution`."""
        # What the child logs outside of its steps is not of the parent's step.
        within = logs.step_id.set(None)
        try:
            with self.listening(self.job):
                return await self.job.execution.run()
        finally:
            logs.step_id.reset(within)

    def stop(self) -> None:
        """Ask it to come to an end."""
        self.job.stop()

    def inspect(self) -> ActorState:
        """Show the actor as it is now."""
        return self.job.inspect()
