"""What tests of jobs share: a store, a runtime on it, and the short way to launch.

By default everything runs on the event loop, so that a virtual clock may be used.
"""

from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from random import Random
from typing import Any, TypeAlias
from uuid import UUID

import pytest
import trio
from attrs import define, evolve, field, frozen

from tests.storage.backends import NOON, Clock
from triolet.actors import (
    BatchStatus,
    Job,
    LaunchReport,
    Node,
    Runtime,
    RuntimeOptions,
    Step,
    StepContext,
    open_runtime,
)
from triolet.storage.backend import AnswerLost, Backend, Descriptor, Settlement, Waits
from triolet.storage.commands import (
    Advance,
    Command,
    CommitChunk,
    Enlist,
    OpenExecution,
)
from triolet.storage.dump import Dump
from triolet.storage.memory import MemoryBackend
from triolet.storage.model.errors import TrioletError
from triolet.storage.model.execution import JobExecution, StepExecution

Tasklet: TypeAlias = Callable[[StepContext], object]
JOB = "demo"


class Crash(BaseException):
    """The process dies: nothing may be written any more."""


@frozen
class Lose:
    """Lose the answer to a batch, after it took effect or before."""

    committed: bool


Fault: TypeAlias = Lose | BaseException


@define(eq=False)
class Store:
    """A memory store that counts the commands of jobs and fails as it is told."""

    clock: Callable[[], int] = field(factory=Clock)
    faults: dict[int, Fault] = field(factory=dict)
    """By the number of the job's command, counted from 1."""
    down: Fault | None = None
    """What every batch of jobs meets while it is set."""
    unsettled: BaseException | None = None
    """What `settle` raises while it is set."""
    watch: Callable[[Command[Any]], object] = lambda command: None
    """Called with every command of a job before it is carried out."""
    commands: list[Command[Any]] = field(factory=list)
    """The commands of jobs, in the order of their arrival."""
    inner: MemoryBackend = field(init=False)

    def __attrs_post_init__(self) -> None:
        self.inner = MemoryBackend(self.clock)

    @property
    def descriptor(self) -> Descriptor:
        return self.inner.descriptor

    def apply(
        self, batch_id: UUID, batch: Sequence[Command[Any]]
    ) -> Waits[Sequence[object]]:
        fault = self._fault(batch)
        if isinstance(fault, BaseException):
            raise fault
        if fault is None:
            return (yield from self.inner.apply(batch_id, batch))
        if fault.committed:
            yield from self.inner.apply(batch_id, batch)
        raise AnswerLost("the wire was cut")

    def _fault(self, batch: Sequence[Command[Any]]) -> Fault | None:
        job = Advance, CommitChunk, Enlist, OpenExecution
        mine = [command for command in batch if isinstance(command, job)]
        fault = None
        for command in mine:
            self.commands.append(command)
            self.watch(command)
            fault = self.faults.pop(len(self.commands), self.down)
        return fault

    def settle(
        self, batch_id: UUID, batch: Sequence[Command[Any]]
    ) -> Waits[Settlement]:
        if self.unsettled is not None:
            raise self.unsettled
        return (yield from self.inner.settle(batch_id, batch))

    def close(self) -> None:
        self.inner.close()

    # What tests look at

    def dump(self) -> Dump:
        return self.inner.dump()

    @property
    def executions(self) -> tuple[JobExecution, ...]:
        return self.dump().executions

    @property
    def steps(self) -> tuple[StepExecution, ...]:
        return self.dump().steps

    @property
    def statuses(self) -> list[tuple[str, str]]:
        """Node and status of every step row ever made."""
        return [(step.node, step.status.value) for step in self.steps]

    def rows(self, table: str = "rows") -> list[Any]:
        """Give the first column of a business table, in the order of insertion."""
        found = self.inner.business.execute(f"SELECT * FROM {table} ORDER BY rowid")
        return [row[0] for row in found]

    def settled(self) -> bool:
        """Tell whether no execution and no step is active."""
        dump = self.dump()
        statuses = [one.status for one in dump.executions]
        statuses += [one.status for one in dump.steps]
        return not any(status.active for status in statuses)


def trio_clock() -> int:
    """Tell the time of a store that lives in a trio program's own time."""
    return NOON + round(trio.current_time() * 1_000_000)


def options(**changes: Any) -> RuntimeOptions:
    return RuntimeOptions(**{"inline": True, "random": Random(7), **changes})


@asynccontextmanager
async def running(backend: Backend, **changes: Any) -> AsyncIterator[Runtime]:
    """Open a runtime that uses no threads unless told otherwise."""
    async with open_runtime(backend, options(**changes)) as runtime:
        yield runtime


async def launch(
    backend: Backend,
    job: Job,
    parameters: Mapping[str, object] | None = None,
    *,
    anew: bool = False,
    **changes: Any,
) -> LaunchReport:
    """Launch once in a runtime of its own; *changes* are the runtime's options."""
    async with running(backend, **changes) as runtime:
        return await runtime.launch(job, parameters, anew=anew)


def job(*nodes: Node, **settings: Any) -> Job:
    return Job(JOB, nodes, **settings)


def single(work: Any, **settings: Any) -> Job:
    """Make a job of the one step ``work``."""
    return job(Step("work", work, **settings))


@define
class Trace:
    """Makes tasklets that note their calls."""

    calls: list[str] = field(factory=list)

    def step(self, node: str, **settings: Any) -> Step:
        return Step(node, self.work(node), **settings)

    def work(self, text: str) -> Tasklet:
        async def work(ctx: StepContext) -> None:
            self.calls.append(text)

        return work

    def failing(self, text: str, until: int = 10**9) -> Tasklet:
        """Make a tasklet that fails in every attempt at the instance before *until*."""

        async def work(ctx: StepContext) -> None:
            self.calls.append(text)
            if ctx.attempt < until:
                raise ValueError(f"{text} is broken")

        return work


def message_of(report: LaunchReport) -> str:
    """Give the stored text of a failed job."""
    assert report.status is BatchStatus.FAILED, report
    assert report.failure is not None
    return report.failure.message or ""


async def refusal(
    store: Store, patient: Job, *parameters: Any, **changes: Any
) -> TrioletError:
    """Launch what is refused; prove that nothing was written but the owner."""
    before = evolve(store.dump(), owners=())
    with pytest.raises(TrioletError) as caught:
        await launch(store, patient, *parameters, **changes)
    assert evolve(store.dump(), owners=()) == before
    return caught.value
