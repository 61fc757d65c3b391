"""Having an engine's commands carried out, and telling what they made durable."""

import logging

from attrs import define, evolve, field

from ...storage.commands import Advance, Advanced, StaleVersion, WriteFailed
from ...storage.model.errors import Rejection, StoreError
from ...storage.model.execution import Failure
from ...storage.model.status import BatchStatus
from ..plan.actions import Action, StepResult
from ..plan.definition import Step
from ..plan.stepping import Stepping
from .boundary import ComponentFailed, OutcomeUnknown, Where
from .events import Event, EventKind
from .narration import narrate
from .step import Environment, failed, unknown

log = logging.getLogger("triolet.job")


@define(eq=False)
class Commits:
    """The commands of one engine, one after the other."""

    engine: Stepping
    environment: Environment
    step: Step | None = field(default=None, init=False)
    """The one that ran last, whose rows a command may write."""

    async def carry_out(self, command: Advance) -> Action:
        """Have a command carried out; give what the engine wants next.

        Raises:
            StoreError: The store failed.
            Rejection: It refused the command.
            trio.Cancelled: The code that writes rows was cancelled.
        """
        try:
            reply = await self.environment.store.ask(command)
        except WriteFailed as exc:
            return self.engine.unwritten(self._unwritten(exc))
        except StaleVersion:
            if (
                command.finish is None
                or command.finish.status is not BatchStatus.UNKNOWN
            ):
                raise
            # The chunk of unknown outcome is durable after all: its row has moved on.
            reply = await self.environment.store.ask(evolve(command, finish=None))
        self._narrate(command, reply)
        return self.engine.committed(reply)

    async def last_word(self, status: BatchStatus, failure: Failure | None) -> None:
        """Close what is open on the way out, if the store still lets us.

        Args:
            status: As for `Stepping.abort`.
            failure: The same.
        """
        command = self.engine.abort(status, failure)
        if command is None:
            return
        try:
            reply = await self.environment.store.ask(command)
        except (StoreError, Rejection) as exc:
            execution_id = self.environment.context.execution_id
            log.warning("execution %d could not be closed: %s", execution_id, exc)
        else:
            self._narrate(command, reply)
            if command.end is not None:
                ended = Event(kind=EventKind.JOB_ENDED, status=status)
                self.environment.announcer.tell(ended)

    def _narrate(self, command: Advance, reply: Advanced) -> None:
        announcer = self.environment.announcer
        if announcer.active:
            for event in narrate(command, reply, self.engine.steps):
                announcer.tell(event)

    def _unwritten(self, exc: WriteFailed) -> StepResult:
        assert self.step is not None, "no step ran that could have written"
        where = Where(self.step.id, "write_failed")
        boundary = self.environment.boundary
        match boundary.failed(where, exc.cause):
            case ComponentFailed(failure=failure):
                return failed(failure)
            case OutcomeUnknown() as open_end:
                return unknown(boundary.failure(where, open_end))
            case other:
                raise other from exc
