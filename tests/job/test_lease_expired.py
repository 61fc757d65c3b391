"""A runtime that cannot renew its lease ends what runs before somebody takes it over."""

import threading
from collections.abc import Sequence
from typing import Any
from uuid import UUID

import pytest
import trio
import trio.testing

from tests.job.harness import Store, running
from triolet.actors import (
    BatchStatus,
    Job,
    JobStep,
    LeaseExpired,
    Node,
    OnStop,
    PartitionedStep,
    Split,
    Step,
    StepContext,
)
from triolet.storage.backend import Waits
from triolet.storage.commands import Command, RenewLease
from triolet.storage.model.errors import StoreUnusable

LEASE = 30.0


class Unrenewable(Store):
    """A memory store that renews no lease as long as it is told so."""

    failing = True

    def apply(
        self, batch_id: UUID, batch: Sequence[Command[Any]]
    ) -> Waits[Sequence[object]]:
        outcomes = yield from super().apply(batch_id, batch)
        if not self.failing:
            return outcomes
        refused = StoreUnusable("no renewals today")
        return [
            refused if isinstance(command, RenewLease) else outcome
            for command, outcome in zip(batch, outcomes, strict=True)
        ]


@pytest.fixture
def store() -> Unrenewable:
    return Unrenewable(clock=lambda: round(trio.current_time() * 1_000_000))


async def patient(ctx: StepContext) -> None:
    if ctx.step_attempt == 1:
        await trio.sleep(600)


async def nothing(_: StepContext) -> None:
    pass


def one(_: object) -> list[tuple[str, dict[str, object]]]:
    return [("only", {})]


JOBS: dict[str, list[Node]] = {
    "step": [Step("work", patient)],
    "cooperative": [Step("work", patient, on_stop=OnStop.COOPERATE, grace=300)],
    "split": [
        Step("before", nothing),
        Split("both", [[Step("left", patient)], [Step("right", patient)]]),
    ],
    "partitions": [PartitionedStep("parts", patient, one, 1)],
    "child": [JobStep("inner", Job("child", [Step("work", patient)]))],
}


@pytest.mark.parametrize("kind", JOBS)
async def test_what_runs_is_cancelled_when_the_lease_runs_out(
    store: Unrenewable, autojump_clock: trio.testing.MockClock, kind: str
) -> None:
    """C175: the loss of the renewer ends the body's authority."""
    job = Job("demo", JOBS[kind])
    async with running(store, lease=LEASE) as runtime:
        began = trio.current_time()
        with pytest.raises(LeaseExpired, match="launch the job again"):
            await runtime.launch(job)
        assert LEASE - 1 < trio.current_time() - began <= LEASE
        # The store could be reached, and nobody had taken it over.
        assert {execution.status for execution in store.executions} == {"STOPPED"}
        store.failing = False
        report = await runtime.launch(job)
        assert report.status is BatchStatus.COMPLETED


async def test_a_function_in_a_thread_learns_of_it_by_its_stop_token(
    mock_clock: trio.testing.MockClock,
) -> None:
    store = Unrenewable(clock=lambda: round(trio.current_time() * 1_000_000))
    began, seen = threading.Event(), threading.Event()

    def work(ctx: StepContext) -> None:
        began.set()
        while not ctx.stop.is_set():
            seen.wait(0.01)
        seen.set()

    async with running(store, lease=LEASE, inline=False) as runtime:
        async with trio.open_nursery() as nursery:

            async def launch() -> None:
                report = await runtime.launch(Job("demo", [Step("work", work)]))
                assert report.status is BatchStatus.STOPPED

            nursery.start_soon(launch)
            await trio.to_thread.run_sync(began.wait)
            mock_clock.jump(LEASE / 3 + 1)
            await trio.testing.wait_all_tasks_blocked(0.01)
            mock_clock.jump(LEASE)
        assert seen.is_set()


async def test_a_runtime_whose_lease_is_renewed_cancels_nothing(
    store: Unrenewable, autojump_clock: trio.testing.MockClock
) -> None:
    store.failing = False
    async with running(store, lease=LEASE) as runtime:
        report = await runtime.launch(Job("demo", [Step("work", patient)]))
        assert report.status is BatchStatus.COMPLETED
