"""The transition matrix as every backend keeps it, for steps and for executions."""

from itertools import product

import pytest

from tests.storage.client import SOME_COUNTS, Client, job_end, next_step, step_end
from tests.storage.matrix import ORDER, verdict
from triolet.storage.commands import LeaseLost, Opened
from triolet.storage.model.status import BatchStatus

S = BatchStatus
PAIRS = list(product(ORDER, ORDER))


def step_that_is(client: Client, opened: Opened, status: BatchStatus) -> int:
    """Bring a new step to *status* by legal commands."""
    step_id = client.start(opened, starting=status is S.STARTING)
    way: tuple[BatchStatus, ...] = (status,)
    if status in (S.STARTING, S.STARTED):
        way = ()
    elif status is S.ABANDONED:
        way = (S.FAILED, S.ABANDONED)
    for version, target in enumerate(way):
        end = step_end(step_id, version=1 + 2 * version, status=target)
        client.advance(opened, finish=end)
    assert client.step(step_id).status is status
    return step_id


@pytest.mark.parametrize(("found", "wanted"), PAIRS)
def test_a_step_follows_the_matrix(
    client: Client, found: BatchStatus, wanted: BatchStatus
) -> None:
    opened = client.open()
    step_id = step_that_is(client, opened, found)
    version = client.step(step_id).version
    command = client.advancing(
        opened, finish=step_end(step_id, version=version, status=wanted)
    )

    refused = verdict(found, wanted)

    if refused is not None:
        assert client.refusal(command) == refused
        return
    client.ask(command)
    step = client.step(step_id)
    assert (step.status, step.version) == (wanted, version + 2)
    assert (step.ended_at is None) is not wanted.finished


@pytest.mark.parametrize(
    ("found", "wanted"),
    [
        pair
        for pair in product((S.STARTED, S.STOPPING), ORDER)
        # Written as STOPPED, as the next test tells.
        if pair != (S.STOPPING, S.COMPLETED)
    ],
)
def test_an_active_execution_follows_the_matrix(
    client: Client, found: BatchStatus, wanted: BatchStatus
) -> None:
    opened = client.open()
    if found is S.STOPPING:
        client.advance(opened, end=job_end(S.STOPPING))
    version = client.execution(1).version
    command = client.advancing(opened, end=job_end(wanted))

    refused = verdict(found, wanted)

    if refused is not None:
        assert client.refusal(command) == refused
        return
    client.ask(command)
    execution = client.execution(1)
    assert (execution.status, execution.version) == (wanted, version + 2)
    assert (execution.ended_at is None) is not wanted.finished


def test_an_execution_that_is_stopping_never_completes(client: Client) -> None:
    opened = client.open()
    client.advance(opened, end=job_end(S.STOPPING))

    reply = client.advance(opened, end=job_end(S.COMPLETED, counts=SOME_COUNTS))

    assert reply.stopped
    execution = client.execution(1)
    assert (execution.status, execution.exit_code) == (S.STOPPED, "STOPPED")
    assert (execution.version, execution.counts) == (5, SOME_COUNTS)
    assert execution.ended_at is not None


@pytest.mark.parametrize("found", [S.STOPPED, S.FAILED, S.COMPLETED, S.UNKNOWN])
@pytest.mark.parametrize("wanted", ORDER)
def test_an_execution_that_is_not_active_is_out_of_reach(
    client: Client, found: BatchStatus, wanted: BatchStatus
) -> None:
    opened = client.open(first=next_step())
    client.advance(opened, end=job_end(found))

    refusal = client.refusal(client.advancing(opened, end=job_end(wanted)))

    assert refusal == LeaseLost(1, found)


def test_an_active_execution_holds_the_slot_of_its_instance(client: Client) -> None:
    client.open()

    assert client.refusal(client.opening()).code == "already_running"
