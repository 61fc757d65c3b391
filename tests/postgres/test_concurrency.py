"""Branches that commit side by side on real servers."""

from collections import defaultdict
from collections.abc import Sequence
from typing import Any
from uuid import UUID

import pytest
import trio

from tests.testing.jobs import nesting, partitioning, splitting
from triolet.actors import (
    BatchStatus,
    Job,
    Node,
    PartitionedStep,
    RuntimeOptions,
    Step,
    StepContext,
    open_runtime,
)
from triolet.storage.backend import Waits
from triolet.storage.commands import Advance, Command, FindStops, RenewLease
from triolet.storage.postgres import PostgresBackend


async def test_a_split_ends_on_a_server_as_it_does_elsewhere(
    each_postgres_url: str,
) -> None:
    async with open_runtime(each_postgres_url) as runtime:
        failed = await runtime.launch(splitting(), day="2026-12-02")
        assert failed.status is BatchStatus.FAILED
        report = await runtime.launch(splitting(), day="2026-12-02")
        assert report.status is BatchStatus.COMPLETED
        detail = await runtime.show(report.execution_id)
    assert {"a", "b1", "d"} - {step.node for step in report.steps} == set()
    assert [one.source for one in detail.decisions if one.step_id is None] == [
        "both.join",
        "enough",
    ]


async def test_flows_in_branches_end_on_a_server_as_they_do_elsewhere(
    each_postgres_url: str,
) -> None:
    async with open_runtime(each_postgres_url) as runtime:
        failed = await runtime.launch(nesting(), day="2026-12-02")
        assert failed.status is BatchStatus.FAILED
        report = await runtime.launch(nesting(), day="2026-12-02")
        assert report.status is BatchStatus.COMPLETED
        detail = await runtime.show(report.execution_id)
    assert [one.source for one in detail.decisions] == [
        *("a", "b", "parts", "inner.join", "other.join", "f"),
        *("outer.join", "last", "z"),
    ]


async def test_partitions_end_on_a_server_as_they_do_elsewhere(
    each_postgres_url: str,
) -> None:
    async with open_runtime(each_postgres_url) as runtime:
        failed = await runtime.launch(partitioning(), day="2026-12-02")
        assert failed.status is BatchStatus.FAILED
        report = await runtime.launch(partitioning(), day="2026-12-02")
        assert report.status is BatchStatus.COMPLETED
        detail = await runtime.show(report.execution_id)
    assert [one.key for one in report.partitions] == [*"abcd"] * 2
    assert len(detail.partitions) == 8
    assert {one.status for one in detail.partitions} == {BatchStatus.COMPLETED}
    assert report.counts.written == 20


async def test_a_job_keeps_to_one_connection_and_its_partitions_take_all(
    postgres_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    taken: dict[str, set[int]] = defaultdict(set)
    apply = PostgresBackend.apply

    def noting(
        self: PostgresBackend, batch_id: UUID, batch: Sequence[Command[Any]]
    ) -> Waits[Sequence[object]]:
        for command in batch:
            if isinstance(command, Advance):
                finish, start = command.finish, command.start
                parts = [
                    one.partition.ordinal
                    for one in (finish, start)
                    if one is not None and one.partition is not None
                ]
                who = f"partition {parts[0]}" if parts else "the job"
                taken[who].add(id(self))
            elif isinstance(command, RenewLease | FindStops):
                taken["control"].add(id(self))
        return (yield from apply(self, batch_id, batch))

    async def work(ctx: StepContext) -> None:
        await trio.sleep(0.01)

    monkeypatch.setattr(PostgresBackend, "apply", noting)
    keys: list[tuple[str, dict[str, int]]] = [(f"{number}", {}) for number in range(9)]
    nodes: list[Node] = [
        Step("first", work),
        PartitionedStep("parts", work, lambda ctx: keys, len(keys), max_workers=9),
        *(Step(f"later {number}", work) for number in range(20)),
    ]
    options = RuntimeOptions(connections=3, lease=1, stop_poll=0.1)
    async with open_runtime(postgres_url, options) as runtime:
        report = await runtime.launch(Job("spread", nodes))
    assert report.status is BatchStatus.COMPLETED
    partitions = [taken[f"partition {number}"] for number in range(1, 10)]
    assert {len(one) for one in [*partitions, taken["the job"]]} == {1}
    assert len(set().union(*partitions)) == 3
    assert taken["control"].isdisjoint(set().union(*partitions))
