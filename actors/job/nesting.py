"""A child that runs: a job execution inside of a step of another one."""

from collections.abc import Callable
from contextlib import AbstractContextManager

from attrs import frozen

from ..kernel.inspecting import ActorKind, ActorState
from ..kernel.mailbox import Mailbox
from . import logs
from .execution import JobExecution
from .report import LaunchReport
from .walk import Stop


@frozen
class RunningChild:
    """A child, run by whoever runs its parent's step."""

    execution: JobExecution
    mailbox: Mailbox[Stop]
    listening: Callable[[JobExecution, Mailbox[Stop]], AbstractContextManager[None]]
    """Has the mailbox read, and the execution known to its runtime."""

    async def run(self) -> LaunchReport:
        """Go through the job to its end; see `JobExecution`."""
        # What the child logs outside of its steps is not of the parent's step.
        within = logs.step_id.set(None)
        try:
            with self.listening(self.execution, self.mailbox):
                return await self.execution.run()
        finally:
            logs.step_id.reset(within)

    def stop(self) -> None:
        """Ask it to come to an end."""
        self.execution.stop_token.set()
        self.mailbox.offer(Stop())

    def inspect(self) -> ActorState:
        """Show the actor as it is now."""
        execution = self.execution
        return execution.inspect(ActorKind.JOB, execution.title, self.mailbox.depth)
