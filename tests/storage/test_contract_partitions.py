"""The contract of partitions: planned, worked on, published, copied by a restart."""

import pytest

from tests.storage.client import (
    LEASE,
    SOME_COUNTS,
    Client,
    job_end,
    next_step,
    step_end,
)
from triolet.storage.commands import (
    Advance,
    LeaseLost,
    Opened,
    PartitionStale,
    PlanUnknown,
    RenewLease,
    ShowExecution,
)
from triolet.storage.model.digests import partition_worker
from triolet.storage.model.execution import NO_COUNTS
from triolet.storage.model.parameters import parameters_of
from triolet.storage.model.partition import (
    CopiedPlan,
    NewPartition,
    PartitionExecution,
    PartitionRef,
)
from triolet.storage.model.status import BatchStatus

NODE = "parts"
PLAN = (
    NewPartition("us", '{"n":1}'),
    NewPartition("eu", '{"n":2}'),
    NewPartition("Übersee", "{}"),
)
COMPLETED, FAILED = BatchStatus.COMPLETED, BatchStatus.FAILED
PENDING, STARTED = BatchStatus.STARTING, BatchStatus.STARTED


def managed(client: Client, opened: Opened) -> int:
    """Start a manager with a plan; give its row's id."""
    return client.start(opened, NODE, plan=PLAN)


def work(client: Client, opened: Opened, ref: PartitionRef) -> int:
    """Have a worker begin; give its row's id."""
    key = next(one.key for one in plan_of(client, ref) if one.ordinal == ref.ordinal)
    return client.start(opened, partition_worker(NODE, key), partition=ref)


def done(
    client: Client,
    opened: Opened,
    ref: PartitionRef,
    status: BatchStatus = COMPLETED,
) -> int:
    """Have a worker begin and end; give its row's id."""
    worker = work(client, opened, ref)
    end = step_end(
        worker,
        status=status,
        exit_code=status.value,
        counts=SOME_COUNTS,
        partition=ref,
    )
    client.advance(opened, finish=end)
    return worker


def plan_of(client: Client, ref: PartitionRef) -> list[PartitionExecution]:
    return [one for one in client.dump().partitions if one.manager_id == ref.manager_id]


def statuses(client: Client, manager: int) -> list[BatchStatus]:
    return [one.status for one in plan_of(client, PartitionRef(manager, 1))]


def ended(client: Client, opened: Opened, manager: int) -> None:
    """End manager and job, so that another attempt may follow."""
    finish = step_end(manager, status=FAILED, exit_code="FAILED")
    client.advance(opened, finish=finish, end=job_end(FAILED))


def test_manager_and_plan_are_one_command(client: Client) -> None:
    opened = client.open()

    manager = managed(client, opened)

    found = plan_of(client, PartitionRef(manager, 1))
    assert [(one.ordinal, one.key, one.context) for one in found] == [
        (number, one.key, one.context) for number, one in enumerate(PLAN, 1)
    ]
    assert {one.status for one in found} == {PENDING}
    assert {(one.worker_id, one.counts, one.version) for one in found} == {
        (None, NO_COUNTS, 0)
    }
    detail = client.ask(ShowExecution(opened.execution_id))
    assert list(detail.partitions) == found


def test_what_came_of_a_partition_is_taken_from_its_workers_row(client: Client) -> None:
    opened = client.open()
    ref = PartitionRef(managed(client, opened), 2)

    worker = work(client, opened, ref)
    (_, begun, _) = plan_of(client, ref)
    end = step_end(worker, exit_code="PART", counts=SOME_COUNTS, partition=ref)
    client.advance(opened, finish=end)

    assert (begun.status, begun.worker_id, begun.version) == (STARTED, worker, 1)
    (_, found, _) = plan_of(client, ref)
    assert (found.status, found.exit_code) == (COMPLETED, "PART")
    assert (found.counts, found.worker_id, found.version) == (SOME_COUNTS, worker, 2)
    assert statuses(client, ref.manager_id) == [PENDING, COMPLETED, PENDING]


def starting(client: Client, opened: Opened, ref: PartitionRef) -> Advance:
    worker = partition_worker(NODE, f"another {ref.ordinal}")
    return client.advancing(opened, start=next_step(worker, partition=ref))


def test_only_a_pending_partition_is_taken(client: Client) -> None:
    opened = client.open()
    manager = managed(client, opened)
    work(client, opened, PartitionRef(manager, 1))
    done(client, opened, PartitionRef(manager, 2))
    done(client, opened, PartitionRef(manager, 3), FAILED)

    for ordinal in (1, 2, 3, 4):
        ref = PartitionRef(manager, ordinal)
        refusal = client.refusal(starting(client, opened, ref))
        assert refusal == PartitionStale(manager, ordinal)


def test_nobody_works_for_a_manager_that_does_not_run(client: Client) -> None:
    opened = client.open()
    manager = managed(client, opened)
    ref = PartitionRef(manager, 1)
    finish = step_end(manager, status=FAILED, exit_code="FAILED")
    client.advance(opened, finish=finish)

    assert client.refusal(starting(client, opened, ref)) == PartitionStale(manager, 1)


def test_nobody_works_for_the_manager_of_another_execution(client: Client) -> None:
    opened = client.open()
    manager = managed(client, opened)
    other = client.open(parameters_of({"day": "another"}))

    refusal = client.refusal(starting(client, other, PartitionRef(manager, 1)))

    assert refusal == PartitionStale(manager, 1)


def test_nobody_but_its_worker_ends_a_partition(client: Client) -> None:
    opened = client.open()
    manager = managed(client, opened)
    first, second = PartitionRef(manager, 1), PartitionRef(manager, 2)
    worker = work(client, opened, first)
    work(client, opened, second)

    stranger = step_end(worker, partition=second)

    refusal = client.refusal(client.advancing(opened, finish=stranger))
    assert refusal == PartitionStale(manager, 2)
    assert statuses(client, manager) == [STARTED, STARTED, PENDING]


def test_a_restart_copies_what_was_completed_and_nothing_else(client: Client) -> None:
    opened = client.open()
    manager = managed(client, opened)
    worker = done(client, opened, PartitionRef(manager, 1))
    done(client, opened, PartitionRef(manager, 2), FAILED)
    ended(client, opened, manager)

    again = client.open()
    copy = client.start(again, NODE, plan=CopiedPlan(manager))

    one, two, three = plan_of(client, PartitionRef(copy, 1))
    assert (one.status, one.worker_id, one.counts) == (COMPLETED, worker, SOME_COUNTS)
    for pending in (two, three):
        assert (pending.status, pending.worker_id) == (PENDING, None)
        assert (pending.exit_code, pending.counts) == ("UNKNOWN", NO_COUNTS)
    assert [(one.key, one.context, one.ordinal) for one in (one, two, three)] == [
        (new.key, new.context, at) for at, new in enumerate(PLAN, 1)
    ]
    assert {one.version for one in (one, two, three)} == {0}
    refused = starting(client, again, PartitionRef(copy, 1))
    assert client.refusal(refused) == PartitionStale(copy, 1)


def test_an_opening_tells_of_the_newest_plan_only(client: Client) -> None:
    opened = client.open()
    manager = managed(client, opened)
    done(client, opened, PartitionRef(manager, 1))
    ended(client, opened, manager)
    again = client.open()
    copy = client.start(again, NODE, plan=CopiedPlan(manager))
    done(client, again, PartitionRef(copy, 2))
    ended(client, again, copy)

    third = client.open()

    assert [one.manager_id for one in third.snapshot.partitions] == [copy] * 3
    assert [one.status for one in third.snapshot.partitions] == [
        COMPLETED,
        COMPLETED,
        PENDING,
    ]


def test_an_attempt_without_a_plan_leaves_the_one_before_it_the_newest(
    client: Client,
) -> None:
    opened = client.open()
    manager = managed(client, opened)
    ended(client, opened, manager)
    again = client.open()
    ended(client, again, client.start(again, NODE))

    third = client.open()

    assert {one.manager_id for one in third.snapshot.partitions} == {manager}


@pytest.mark.parametrize("wrong", ["node", "instance", "manager", "plan"])
def test_a_plan_is_copied_from_an_earlier_attempt_at_the_same_node_only(
    client: Client, wrong: str
) -> None:
    opened = client.open()
    plain = client.start(opened, "plain")
    client.advance(opened, finish=step_end(plain))
    manager = managed(client, opened)
    ended(client, opened, manager)
    another = parameters_of({"day": "another"})
    again = client.open(another) if wrong == "instance" else client.open()
    source = {"manager": 99, "plan": plain}.get(wrong, manager)
    node = {"node": "others", "plan": "plain"}.get(wrong, NODE)
    copying = client.advancing(again, start=next_step(node, plan=CopiedPlan(source)))

    assert client.refusal(copying) == PlanUnknown(source)


def test_what_a_dead_owners_workers_had_begun_is_closed(client: Client) -> None:
    opened = client.open()
    manager = managed(client, opened)
    done(client, opened, PartitionRef(manager, 1))
    worker = work(client, opened, PartitionRef(manager, 2))
    late = client.advancing(
        opened, finish=step_end(worker, partition=PartitionRef(manager, 2))
    )
    client.owner()
    client.clock.now += LEASE
    client.ask(RenewLease(2, LEASE))

    again = client.open()

    assert again.took_over == opened.execution_id
    assert statuses(client, manager) == [COMPLETED, FAILED, PENDING]
    assert isinstance(client.refusal(late), LeaseLost)
    copy = client.start(again, NODE, plan=CopiedPlan(manager))
    assert statuses(client, copy) == [COMPLETED, PENDING, PENDING]


def test_a_refused_worker_leaves_the_result_beside_it_out(client: Client) -> None:
    """Finish of one partition and start of the next are one command, or none."""
    opened = client.open()
    manager = managed(client, opened)
    first, second = PartitionRef(manager, 1), PartitionRef(manager, 2)
    worker = work(client, opened, first)
    done(client, opened, second)
    both = client.advancing(
        opened,
        finish=step_end(worker, partition=first),
        start=next_step(partition_worker(NODE, "more"), partition=second),
    )

    assert client.refusal(both) == PartitionStale(manager, 2)
