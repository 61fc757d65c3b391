"""Calling the listeners of a job, around all that its nodes do."""

from collections.abc import Callable

import trio
from attrs import define, field

from ...storage.model.execution import Failure
from ..plan.actions import Conclude
from ..plan.definition import JobListener
from .boundary import Boundary, ComponentFailed, OutcomeUnknown, Where
from .context import JobContext, JobOutcome


@define(eq=False)
class JobListening:
    """The listeners of one attempt."""

    listeners: tuple[JobListener, ...]
    context: JobContext
    boundary: Boundary
    calling: tuple[str, object] | None = field(default=None, init=False)
    """The before-listener that is being called, by its name."""

    async def before(self) -> Failure | None:
        """Call the before-listeners, until one fails or the job is to stop.

        Returns:
            What made one of them fail.
        """
        for listener in self.listeners:
            await trio.lowlevel.checkpoint_if_cancelled()
            if listener.before is None or self.context.stop.is_set():
                continue
            where = Where(listener.name, "before_job_listener_failed")
            self.calling = (listener.name, listener.before)
            try:
                failure = await self._call(where, listener.before, self.context)
            finally:
                self.calling = None
            if failure is not None:
                return failure
        return None

    async def after(self, end: Conclude) -> Failure | None:
        """Call all after-listeners; give the first failure."""
        first = None
        message = None if end.failure is None else end.failure.message
        outcome = JobOutcome(end.status, end.exit_code, message)
        for listener in reversed(self.listeners):
            await trio.lowlevel.checkpoint_if_cancelled()
            if listener.after is not None:
                where = Where(listener.name, "after_job_listener_failed")
                failure = await self._call(where, listener.after, self.context, outcome)
                first = first or failure
        return first

    async def _call(
        self, where: Where, function: Callable[..., object], *arguments: object
    ) -> Failure | None:
        try:
            await self.boundary.call(where, function, *arguments)
        except ComponentFailed as exc:
            return exc.failure
        except OutcomeUnknown as exc:
            return self.boundary.failure(where, exc)
        return None
