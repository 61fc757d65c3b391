"""What a split and a partition manager have in common: children side by side.

An actor with a mailbox of its own. It runs at most so many children at a time, in
their order; what the failure of one means to the others is its policy; and it always
waits for all of them.
"""

from collections import deque
from collections.abc import Sequence
from typing import ClassVar, TypeAlias

import outcome
from attrs import evolve, frozen

from ...storage.model.status import BatchStatus
from ..kernel.group import ActorGroup, Exited, open_group
from ..kernel.inspecting import Activity, ActorKind, ActorState
from ..kernel.mailbox import Inbox, Mailbox
from ..kernel.nursery import open_flat_nursery
from ..kernel.stop import StopToken
from ..plan.actions import Ended, LineResult
from ..plan.branching import FailurePolicy
from ..plan.stepping import Stepping
from .step import Environment
from .walk import Stop, Walk

FanMessage: TypeAlias = Stop | Exited
STOPS = 2
"""A stop is said once; one more may come from above at the same moment."""


class Line(Walk):
    """A child: its steps, one after the other."""

    async def run(self, inbox: Inbox[Stop]) -> LineResult:
        """Run the steps to their end; see `Walk`."""
        async with open_flat_nursery() as nursery:
            nursery.start_soon(self.listen, inbox)
            end = await self._walk()
            nursery.cancel_scope.cancel()
        assert isinstance(end, Ended)
        return end.result


@frozen
class _Child:
    name: str
    line: Line
    mailbox: Mailbox[Stop]


class Fan:
    """Runs children side by side.

    Args:
        name: Id of the node.
        engines: Of the children, in the order in which they begin.
        budget: How many run at the same time at most.
        policy: What the failure of one means to the others.
        environment: Of the job; the children have a stop token of their own.
    """

    kind: ClassVar[ActorKind]
    child_kind: ClassVar[ActorKind]
    name: str
    """Id of the node."""

    def __init__(
        self,
        name: str,
        engines: Sequence[Stepping],
        budget: int,
        policy: FailurePolicy,
        environment: Environment,
    ) -> None:
        self.name = name
        self._engines = engines
        self._budget = budget
        self._policy = policy
        self._token = StopToken(environment.context.stop)
        context = evolve(environment.context, stop=self._token)
        self._environment = evolve(environment, context=context)
        self.mailbox = Mailbox[FanMessage](budget + STOPS)
        self._children: dict[int, _Child] = {}
        self._results: dict[int, LineResult] = {}
        self._error: BaseException | None = None

    def inspect(self) -> ActorState:
        """Show the actor and its children as they are now."""
        stopping = self._token.is_set()
        return ActorState(
            kind=self.kind,
            name=self.name,
            activity=Activity.STOPPING if stopping else Activity.RUNNING,
            waiting=self.mailbox.depth,
            children=tuple(
                child.line.inspect(self.child_kind, child.name, child.mailbox.depth)
                for child in self._children.values()
            ),
        )

    def stop(self) -> None:
        """Tell the actor to stop all children."""
        self.mailbox.offer(Stop())

    async def run(self, inbox: Inbox[FanMessage]) -> tuple[LineResult, ...]:
        """Run all children; give their results in the order of their engines.

        Raises:
            TrioletError: The first error that ended a child other than by a result; the
                others were stopped, and have ended.
            trio.Cancelled: The scope around was cancelled; so were the children.
        """
        waiting = deque(range(len(self._engines)))
        async with open_group(self.mailbox, _unchanged) as group:
            while waiting or self._children:
                while waiting and len(self._children) < self._budget:
                    self._begin(group, waiting.popleft())
                if self._children:
                    self._take_in(await inbox.receive())
        if self._error is not None:
            raise self._error
        return tuple(self._results[at] for at in range(len(self._engines)))

    def _child(self, at: int) -> tuple[str, Line]:
        """Make the actor of a child, and name it."""
        raise NotImplementedError

    def _begin(self, group: ActorGroup[FanMessage], at: int) -> None:
        if self._token.is_set():
            engine = self._engines[at]
            engine.stop()
            action = engine.begin()
            assert isinstance(action, Ended), "a stopped child was to begin"
            self._results[at] = action.result
            return
        name, line = self._child(at)
        child = self._children[at] = _Child(name, line, Mailbox(STOPS))
        group.start(str(at), line, child.mailbox)

    def _take_in(self, message: FanMessage) -> None:
        match message:
            case Stop():
                self._stop_all()
            case Exited(name, outcome.Value(LineResult() as result)):
                del self._children[int(name)]
                self._results[int(name)] = result
                bad = result.status in (BatchStatus.FAILED, BatchStatus.UNKNOWN)
                if bad and self._policy is FailurePolicy.CANCEL_SIBLINGS:
                    self._stop_all()
            case Exited(name, outcome.Error(error)):
                del self._children[int(name)]
                self._error = self._error or error
                self._stop_all()

    def _stop_all(self) -> None:
        self._token.set()
        for child in self._children.values():
            child.mailbox.offer(Stop())


def _unchanged(exited: Exited) -> Exited:
    return exited
