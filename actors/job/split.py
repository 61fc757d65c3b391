"""The split actor: runs the branches of one split side by side, and waits for all."""

from collections import deque
from typing import TypeAlias

import outcome
from attrs import evolve

from ...storage.model.status import BatchStatus
from ..kernel.group import ActorGroup, Exited, open_group
from ..kernel.mailbox import Inbox, Mailbox
from ..kernel.nursery import open_flat_nursery
from ..kernel.stop import StopToken
from ..plan.actions import Ended, LineResult, RunSplit
from ..plan.branching import FailurePolicy
from ..plan.compile import CompiledJob
from .step import Environment
from .walk import Stop, Walk

SplitMessage: TypeAlias = Stop | Exited
_STOPS = 2
"""A stop is said once; one more may come from above at the same moment."""


class Branch(Walk):
    """One branch: its steps, one after the other."""

    async def run(self, inbox: Inbox[Stop]) -> LineResult:
        """Run the branch to its end; see `Walk`."""
        async with open_flat_nursery() as nursery:
            nursery.start_soon(self.listen, inbox)
            end = await self._walk()
            nursery.cancel_scope.cancel()
        assert isinstance(end, Ended)
        return end.result


class Split:
    """Runs at most so many branches at a time; those that wait begin in their order.

    Args:
        action: The split and the engines of its branches.
        job: The compiled job.
        environment: Of the job; the branches have a stop token of their own.
    """

    def __init__(
        self, action: RunSplit, job: CompiledJob, environment: Environment
    ) -> None:
        self._node = action.node
        self._engines = action.branches
        self._budget = job.splits[action.node.id].max_parallel
        self._job = job
        self._token = StopToken(environment.context.stop)
        context = evolve(environment.context, stop=self._token)
        self._environment = evolve(environment, context=context)
        self.mailbox = Mailbox[SplitMessage](len(self._engines) + _STOPS)
        self._children: dict[str, Mailbox[Stop]] = {}
        self._results: dict[int, LineResult] = {}
        self._error: BaseException | None = None

    def stop(self) -> None:
        """Tell the split to stop."""
        self.mailbox.offer(Stop())

    async def run(self, inbox: Inbox[SplitMessage]) -> tuple[LineResult, ...]:
        """Run all branches; give their results in the order of declaration.

        Raises:
            TrioletError: The first error that ended a branch other than by a result;
                the other branches were stopped, and have ended.
            trio.Cancelled: The scope around was cancelled; so were the branches.
        """
        waiting = deque(range(len(self._engines)))
        async with open_group(self.mailbox, _unchanged) as group:
            while waiting or self._children:
                while waiting and len(self._children) < self._budget:
                    self._start(group, waiting.popleft())
                self._take_in(await inbox.receive())
        if self._error is not None:
            raise self._error
        return tuple(self._results[at] for at in range(len(self._engines)))

    def _start(self, group: ActorGroup[SplitMessage], at: int) -> None:
        engine = self._engines[at]
        if self._token.is_set():
            engine.stop()
        name = str(at)
        mailbox = self._children[name] = Mailbox[Stop](_STOPS)
        branch = Branch(self._job, engine, self._environment)
        group.start(name, branch, mailbox)

    def _take_in(self, message: SplitMessage) -> None:
        match message:
            case Stop():
                self._stop_all()
            case Exited(name, outcome.Value(LineResult() as result)):
                del self._children[name]
                self._results[int(name)] = result
                self._heed(result)
            case Exited(name, outcome.Error(error)):
                del self._children[name]
                self._error = self._error or error
                self._stop_all()

    def _heed(self, result: LineResult) -> None:
        bad = result.status in (BatchStatus.FAILED, BatchStatus.UNKNOWN)
        if bad and self._node.failure_policy is FailurePolicy.CANCEL_SIBLINGS:
            self._stop_all()

    def _stop_all(self) -> None:
        self._token.set()
        for mailbox in self._children.values():
            mailbox.offer(Stop())


def _unchanged(exited: Exited) -> Exited:
    return exited
