"""What a split and a partition manager have in common: lines of steps side by side.

An actor with a mailbox of its own. It runs at most so many lines at a time, in their
order; what the failure of one means to the others is its policy; and it always waits
for all of them.
"""

from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Sequence
from typing import ClassVar

import trio
from attrs import evolve

from ...storage.model.status import BatchStatus
from ..kernel.inspecting import Activity, ActorKind, ActorState
from ..kernel.mailbox import Inbox, Mailbox
from ..kernel.nursery import open_flat_nursery
from ..kernel.stop import StopToken
from ..plan.actions import Ended, LineResult
from ..plan.branching import FailurePolicy
from ..plan.stepping import Stepping
from .step import Environment
from .walk import Stop, Walk

STOPS = 2
"""A stop is said once; one more may come from above at the same moment."""


class Line(Walk):
    """A branch or a worker: its steps, one after the other."""

    async def run(self) -> LineResult:
        """Run the steps to their end; see `Walk`."""
        end = await self._walk()
        assert isinstance(end, Ended)
        return end.result


class Fan(ABC):
    """Runs lines side by side.

    Args:
        name: Id of the node.
        engines: Of the lines, in the order in which they begin.
        budget: How many run at the same time at most.
        policy: What the failure of one means to the others.
        environment: Of the job; the lines have a stop token of their own.
    """

    kind: ClassVar[ActorKind]
    line_kind: ClassVar[ActorKind]

    def __init__(
        self,
        name: str,
        engines: Sequence[Stepping],
        budget: int,
        policy: FailurePolicy,
        environment: Environment,
    ) -> None:
        self.mailbox = Mailbox[Stop](STOPS)
        self._name = name
        self._engines = engines
        self._budget = budget
        self._policy = policy
        self._token = StopToken(environment.context.stop)
        context = evolve(environment.context, stop=self._token)
        self._environment = evolve(environment, context=context)
        self._waiting = deque(range(len(engines)))
        self._lines: dict[int, Line] = {}
        self._results: dict[int, LineResult] = {}
        self._error: Exception | None = None
        self._stopping = trio.Event()

    def inspect(self) -> ActorState:
        """Show the actor and its lines as they are now."""
        stopping = self._token.is_set()
        return ActorState(
            kind=self.kind,
            name=self._name,
            activity=Activity.STOPPING if stopping else Activity.RUNNING,
            waiting=self.mailbox.depth,
            children=tuple(
                line.inspect(self.line_kind, self._name_of(at), 0)
                for at, line in sorted(self._lines.items())
            ),
        )

    async def run(self, inbox: Inbox[Stop]) -> tuple[LineResult, ...]:
        """Run all lines; give their results in the order of their engines.

        Raises:
            TrioletError: The first error that ended a line other than by a result; the
                others were stopped, and have ended.
            trio.Cancelled: The scope around was cancelled; so were the lines.
        """
        async with open_flat_nursery() as beside:
            beside.start_soon(self._listen, inbox)
            beside.start_soon(self._bring_to_end)
            async with open_flat_nursery() as places:
                for _ in range(min(self._budget, len(self._engines))):
                    places.start_soon(self._work)
            beside.cancel_scope.cancel()
        if self._error is not None:
            raise self._error
        return tuple(self._results[at] for at in range(len(self._engines)))

    @abstractmethod
    def _line(self, at: int) -> Line:
        """Make what runs an engine."""

    @abstractmethod
    def _name_of(self, at: int) -> str:
        """Name a line for people."""

    async def _work(self) -> None:
        """Run one line after the other, as one of those that run side by side."""
        while self._waiting:
            at = self._waiting.popleft()
            if self._token.is_set():
                self._results[at] = self._never_begun(at)
                continue
            line = self._lines[at] = self._line(at)
            try:
                result = self._results[at] = await line.run()
            except Exception as exc:
                self._error = self._error or exc
                self._stop_all()
            else:
                bad = result.status in (BatchStatus.FAILED, BatchStatus.UNKNOWN)
                if bad and self._policy is FailurePolicy.CANCEL_SIBLINGS:
                    self._stop_all()
            finally:
                del self._lines[at]

    def _never_begun(self, at: int) -> LineResult:
        engine = self._engines[at]
        engine.stop()
        action = engine.begin()
        assert isinstance(action, Ended), "a line was to begin after a stop"
        return action.result

    def _stop_all(self) -> None:
        self._token.set()
        self._stopping.set()

    async def _listen(self, inbox: Inbox[Stop]) -> None:
        await inbox.receive()
        self._stop_all()

    async def _bring_to_end(self) -> None:
        """Once it is stopped: stop every line, and tell which ones do not heed it."""
        await self._stopping.wait()
        async with open_flat_nursery() as nursery:
            for line in self._lines.values():
                nursery.start_soon(line.take_in_stop)
