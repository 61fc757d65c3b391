"""The contract of taking over from an owner that died, and of the fence behind it."""

import pytest
from attrs import evolve

from tests.storage.backends import NOON
from tests.storage.client import (
    FACTS,
    JOB,
    LEASE,
    SOME_COUNTS,
    Client,
    definition,
    job_end,
    next_step,
    step_end,
)
from triolet.storage.commands import (
    AlreadyRunning,
    CommitChunk,
    IncompatibleDefinition,
    LeaseLost,
    NotRestartable,
    Opened,
    OutcomeUnresolved,
    RenewLease,
)
from triolet.storage.commands.previewing import PreviewOpening
from triolet.storage.model.execution import Counts, ExitCode, Failure
from triolet.storage.model.status import BatchStatus, FailureCategory

DIED = Failure(FailureCategory.STALE_RECOVERED, 9, code="owner_died")


@pytest.fixture
def orphan(client: Client) -> Opened:
    """An execution with one finished step 1 whose owner 1 does nothing more."""
    orphan = client.open(first=next_step("load"))
    client.advance(orphan, finish=step_end(1, counts=SOME_COUNTS))
    client.owner()
    return orphan


def test_an_expired_lease_may_be_taken_over(client: Client, orphan: Opened) -> None:
    client.clock.now += LEASE
    client.ask(RenewLease(2, LEASE))

    opened = client.open()

    assert opened.took_over == opened.restart_of == orphan.execution_id
    assert (opened.execution_id, opened.attempt) == (2, 2)


def test_a_lease_holds_to_its_last_microsecond(client: Client, orphan: Opened) -> None:
    client.clock.now += LEASE - 1

    refusal = client.refusal(client.opening())

    assert refusal == AlreadyRunning(orphan.execution_id, 1, FACTS, 1)


def test_an_owner_that_is_proved_dead_is_taken_over_at_once(
    client: Client, orphan: Opened
) -> None:
    assert client.open(dead_owner=1).took_over == orphan.execution_id


def test_the_death_of_somebody_else_proves_nothing(
    client: Client, orphan: Opened
) -> None:
    refusal = client.refusal(client.opening(dead_owner=2))

    assert isinstance(refusal, AlreadyRunning)


def test_the_dead_owners_execution_ends_as_failed(
    client: Client, orphan: Opened
) -> None:
    client.start(orphan, "report")
    before = client.execution(1)
    client.clock.now += LEASE

    client.open()

    assert client.execution(1) == evolve(
        before,
        status=BatchStatus.FAILED,
        exit_code=ExitCode.FAILED,
        counts=SOME_COUNTS,
        failure=DIED,
        ended_at=NOON + LEASE,
        version=before.version + 2,
    )


@pytest.mark.parametrize(
    "status", [BatchStatus.STARTING, BatchStatus.STARTED, BatchStatus.STOPPING]
)
def test_the_dead_owners_open_step_ends_as_failed(
    client: Client, orphan: Opened, status: BatchStatus
) -> None:
    step_id = client.start(orphan, "report", starting=status is BatchStatus.STARTING)
    if status is BatchStatus.STOPPING:
        client.advance(orphan, finish=step_end(step_id, status=status))
    before = client.step(step_id)
    finished = client.step(1)

    opened = client.open(dead_owner=1)

    assert client.step(step_id) == evolve(
        before,
        status=BatchStatus.FAILED,
        exit_code=ExitCode.FAILED,
        failure=evolve(DIED, where="report"),
        ended_at=NOON,
        version=before.version + 2,
    )
    assert client.step(1) == finished
    assert opened.snapshot.steps == (finished, client.step(step_id))


def test_a_taken_over_execution_counts_the_latest_row_of_each_node(
    client: Client, orphan: Opened
) -> None:
    client.start(orphan, "report")
    client.open(dead_owner=1)
    second = client.open(dead_owner=2, owner_id=client.owner())
    step_id = client.start(second, "load", inherit=1)
    more = Counts(20, 18, 16, 2, 4, 6)
    client.advance(second, finish=step_end(step_id, counts=more))

    client.open(dead_owner=3, owner_id=client.owner())

    assert client.execution(3).counts == more


def test_a_clock_that_stepped_back_does_not_end_rows_before_they_began(
    client: Client, orphan: Opened
) -> None:
    client.start(orphan, "report")
    client.clock.now -= 5

    opened = client.open(dead_owner=1)

    assert client.execution(1).ended_at == NOON
    assert client.step(2).ended_at == NOON
    assert opened.at == NOON - 5


def test_an_unknown_step_makes_the_execution_unknown_and_starts_nothing(
    client: Client, orphan: Opened
) -> None:
    client.start(orphan, "report")
    client.advance(orphan, finish=step_end(2, status=BatchStatus.UNKNOWN))
    client.start(orphan, "publish")
    before = client.dump()

    (outcome,) = client.apply(client.opening(dead_owner=1))

    assert outcome == OutcomeUnresolved(1)
    dump = client.dump()
    assert dump.executions == (
        evolve(
            before.executions[0],
            status=BatchStatus.UNKNOWN,
            version=before.executions[0].version + 1,
        ),
    )
    assert dump.steps[:2] == before.steps[:2]
    assert dump.steps[2].status is BatchStatus.FAILED
    assert dump.steps[2].failure == evolve(DIED, where="publish")
    assert client.refusal(client.opening()) == OutcomeUnresolved(1)


def test_another_definition_takes_nothing_over(client: Client, orphan: Opened) -> None:
    changed = definition("g", revision="2")

    refusal = client.refusal(client.opening(dead_owner=1, definition=changed))

    assert isinstance(refusal, IncompatibleDefinition)


def test_a_stale_owner_is_fenced_out(client: Client, orphan: Opened) -> None:
    client.start(orphan, "report")
    client.open(dead_owner=1)
    lost = LeaseLost(1, BatchStatus.FAILED)

    assert client.refusal(client.advancing(orphan, finish=step_end(2))) == lost
    assert client.refusal(client.advancing(orphan, start=next_step("x"))) == lost
    assert client.refusal(client.advancing(orphan, end=job_end())) == lost
    chunk = CommitChunk(
        execution_id=1,
        owner_id=1,
        step_id=2,
        version=1,
        counts=SOME_COUNTS,
        checkpoint="{}",
    )
    assert client.refusal(chunk) == lost


def test_the_fence_comes_before_every_other_reason(
    client: Client, orphan: Opened
) -> None:
    client.open(dead_owner=1)

    refusal = client.refusal(client.advancing(orphan, finish=step_end(99)))

    assert refusal == LeaseLost(1, BatchStatus.FAILED)


def test_another_owner_cannot_write_to_a_running_execution(
    client: Client, orphan: Opened
) -> None:
    command = evolve(client.advancing(orphan, end=job_end()), owner_id=2)

    assert client.refusal(command) == LeaseLost(1, BatchStatus.STARTED)


def test_an_expired_lease_that_nobody_took_still_commits(
    client: Client, orphan: Opened
) -> None:
    client.clock.now += 10 * LEASE

    client.advance(orphan, end=job_end())

    assert client.execution(1).status is BatchStatus.COMPLETED


def test_what_must_not_be_repeated_is_closed_and_not_followed(
    client: Client, orphan: Opened
) -> None:
    client.start(orphan, "report")
    command = client.opening(dead_owner=1, restartable=False)
    assert client.refusal(PreviewOpening(command)) == NotRestartable(JOB, 1)

    (outcome,) = client.apply(command)

    assert outcome == NotRestartable(JOB, orphan.execution_id)
    (execution,) = client.dump().executions
    assert (execution.status, execution.failure) == (BatchStatus.FAILED, DIED)
    assert client.step(2).status is BatchStatus.FAILED
