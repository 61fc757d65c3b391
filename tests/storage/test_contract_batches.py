"""The contract of batches: like commands side by side are what they are one by one."""

import pytest
from attrs import evolve

from tests.storage.client import SOME_COUNTS, Client, job_end, next_step, step_end
from tests.storage.test_contract_partitions import NODE, PLAN, managed, plan_of, work
from triolet.storage.commands import (
    Advance,
    Advanced,
    DuplicateStep,
    Folded,
    LeaseLost,
    Opened,
    PartitionStale,
    StaleVersion,
    StepEnd,
    StepStarted,
)
from triolet.storage.model.digests import partition_worker
from triolet.storage.model.execution import NodeTarget
from triolet.storage.model.parameters import parameters_of
from triolet.storage.model.partition import PartitionRef
from triolet.storage.model.status import BatchStatus

COMPLETED, FAILED = BatchStatus.COMPLETED, BatchStatus.FAILED
MANY = 40
"""More than a store takes together."""
TEXTS = ("plain", '{"a":"b \\\\ \\" c"}', "NULL", "{1,2}", "Ünïcode ⚙", " ", "'; --")


def opened_with_step(client: Client, number: int) -> tuple[Opened, int]:
    opened = client.open(parameters_of({"number": number}))
    return opened, client.start(opened, "load")


def moving(client: Client, opened: Opened, step_id: int, **changes: object) -> Advance:
    """Make the command that ends a step and starts the next one."""
    end = step_end(step_id, **changes)
    return client.advancing(opened, finish=end, start=next_step("report"))


def test_each_command_writes_its_own_values(client: Client) -> None:
    jobs = [opened_with_step(client, number) for number in range(MANY)]
    ends = [
        StepEnd(
            step_id=step_id,
            version=1,
            status=COMPLETED,
            exit_code=f"CODE {at}",
            counts=evolve(SOME_COUNTS, read=at),
            context=None if at % 3 == 0 else TEXTS[at % len(TEXTS)],
            decision=None if at % 2 else Folded(at + 1, NodeTarget(f"node {at}")),
        )
        for at, (_, step_id) in enumerate(jobs)
    ]
    names = [TEXTS[at % len(TEXTS)] for at in range(MANY)]

    replies = client.apply(
        *(
            client.advancing(opened, finish=end, start=next_step("report", name=name))
            for (opened, _), end, name in zip(jobs, ends, names, strict=True)
        )
    )

    for (opened, step_id), end, name, reply in zip(
        jobs, ends, names, replies, strict=True
    ):
        step = client.step(step_id)
        assert (step.status, step.exit_code, step.counts, step.context) == (
            COMPLETED,
            end.exit_code,
            end.counts,
            end.context,
        )
        written = step.decision and Folded(step.decision.sequence, step.decision.target)
        assert written == end.decision
        assert isinstance(reply, Advanced)
        assert isinstance(reply.start, StepStarted)
        following = client.step(reply.start.step_id)
        assert (following.execution_id, following.name) == (opened.execution_id, name)
        assert following.started_at == step.ended_at == reply.at


def test_a_refused_command_takes_nothing_from_its_neighbours(client: Client) -> None:
    jobs = [opened_with_step(client, number) for number in range(5)]
    batch = [moving(client, *job) for job in jobs]
    batch[2] = moving(client, *jobs[2], version=7)
    batch[4] = evolve(batch[4], owner_id=batch[4].owner_id + 1)

    replies = client.apply(*batch)

    assert replies[2] == StaleVersion(expected=7, actual=1)
    assert isinstance(replies[4], LeaseLost)
    for at, (_, step_id) in enumerate(jobs):
        refused = at in (2, 4)
        assert isinstance(replies[at], Advanced) is not refused
        assert client.step(step_id).status.finished is not refused
    assert [one.node for one in client.dump().steps].count("report") == 3


def test_a_command_sees_what_an_earlier_one_of_its_batch_did(client: Client) -> None:
    jobs = [opened_with_step(client, number) for number in range(4)]
    batch = [moving(client, *job) for job in jobs]
    again = moving(client, *jobs[0])
    entered = client.advancing(jobs[1][0], start=next_step("report"))

    *moved, stale, twice = client.apply(*batch, again, entered)

    assert [type(one) for one in moved] == [Advanced] * 4
    assert stale == StaleVersion(expected=1, actual=3)
    assert twice == DuplicateStep("report")


def test_executions_end_side_by_side(client: Client) -> None:
    jobs = [opened_with_step(client, number) for number in range(4)]
    statuses = (COMPLETED, FAILED, COMPLETED, COMPLETED)

    client.apply(
        *(
            client.advancing(
                opened,
                finish=step_end(step_id, status=status, exit_code=status.value),
                end=job_end(status, exit_code=status.value),
            )
            for (opened, step_id), status in zip(jobs, statuses, strict=True)
        )
    )

    for (opened, step_id), status in zip(jobs, statuses, strict=True):
        assert client.step(step_id).status is status
        execution = client.execution(opened.execution_id)
        assert (execution.status, execution.version) == (status, 3)


def worker_starts(client: Client, opened: Opened, manager: int) -> list[Advance]:
    return [
        client.advancing(
            opened,
            start=next_step(
                partition_worker(NODE, one.key),
                partition=PartitionRef(manager, ordinal),
            ),
        )
        for ordinal, one in enumerate(PLAN, 1)
    ]


def test_workers_of_one_execution_begin_and_end_side_by_side(client: Client) -> None:
    opened = client.open()
    manager = managed(client, opened)

    begun = client.apply(*worker_starts(client, opened, manager))

    workers = []
    for reply in begun:
        assert isinstance(reply, Advanced)
        assert isinstance(reply.start, StepStarted)
        workers.append(reply.start.step_id)
    ref = PartitionRef(manager, 1)
    assert [one.worker_id for one in plan_of(client, ref)] == workers
    client.apply(
        *(
            client.advancing(
                opened,
                finish=step_end(
                    worker,
                    counts=evolve(SOME_COUNTS, read=ordinal),
                    partition=PartitionRef(manager, ordinal),
                ),
            )
            for ordinal, worker in enumerate(workers, 1)
        )
    )
    assert [(one.status, one.counts.read) for one in plan_of(client, ref)] == [
        (COMPLETED, 1),
        (COMPLETED, 2),
        (COMPLETED, 3),
    ]


def test_a_partition_that_is_taken_is_refused_beside_others(client: Client) -> None:
    opened = client.open()
    manager = managed(client, opened)
    taken = PartitionRef(manager, 2)
    worker = work(client, opened, taken)
    first, second, third = worker_starts(client, opened, manager)
    other = next_step("parts:other", partition=taken)
    second = evolve(second, start=other)

    replies = client.apply(first, second, third)

    assert [type(one) for one in replies] == [Advanced, PartitionStale, Advanced]
    assert plan_of(client, taken)[1].worker_id == worker


@pytest.mark.parametrize("count", [1, 2, 3])
def test_the_manager_ends_after_its_workers_of_the_same_batch(
    client: Client, count: int
) -> None:
    opened = client.open()
    manager = managed(client, opened)
    end = client.advancing(opened, finish=step_end(manager))

    *begun, ended, late = client.apply(
        *worker_starts(client, opened, manager)[:count],
        end,
        client.advancing(
            opened, start=next_step("late", partition=PartitionRef(manager, count))
        ),
    )

    assert [type(one) for one in begun] == [Advanced] * count
    assert isinstance(ended, Advanced)
    assert late == PartitionStale(manager, count)
