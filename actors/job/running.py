"""A job execution that runs, with the mailbox by which it is told to stop."""

import trio
from attrs import define, field

from ..kernel.inspecting import ActorKind, ActorState
from ..kernel.mailbox import Mailbox
from .execution import JobExecution
from .walk import Stop

STOPS_MAX = 8
"""A stop is said once; further ones while the first is taken in may be dropped."""


def _mailbox() -> Mailbox[Stop]:
    return Mailbox(STOPS_MAX)


@define(eq=False)
class RunningJob:
    """A job execution and its mailbox."""

    execution: JobExecution
    authority: trio.CancelScope = field(init=False, factory=trio.CancelScope)
    """Around all that it does; cancelled when somebody else may take it over. What a
    child does, is inside of its parent's."""
    _mailbox: Mailbox[Stop] = field(init=False, factory=_mailbox)

    async def listen(self, scope: trio.CancelScope) -> None:
        """Have the mailbox read until *scope* is cancelled."""
        with scope:
            await self.execution.listen(self._mailbox.inbox)

    def stop(self) -> None:
        """Ask it to come to an end; its report will say STOPPED."""
        # No code of the job's begins any more, even before its actor reads this.
        self.execution.stop_token.set()
        self._mailbox.offer(Stop())

    def inspect(self) -> ActorState:
        """Show the actor as it is now."""
        execution = self.execution
        return execution.inspect(ActorKind.JOB, execution.title, self._mailbox.depth)
