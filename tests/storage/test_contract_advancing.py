"""The contract of Advance and CommitChunk: results, decisions, starts, the end."""

import pytest
from attrs import evolve

from tests.storage.backends import NOON
from tests.storage.client import (
    DIGEST,
    FAILURE,
    SOME_COUNTS,
    Client,
    definition,
    digest_of,
    folded,
    job_end,
    new_decision,
    next_step,
    step_end,
)
from triolet.storage.commands import (
    Advance,
    Advanced,
    ChunkCommitted,
    CommitChunk,
    DuplicateStep,
    ExecutionNotFound,
    Opened,
    StaleVersion,
    StartLimitReached,
    StepStarted,
    StepUnknown,
)
from triolet.storage.model.execution import (
    NO_COUNTS,
    Counts,
    Decision,
    DecisionRef,
    ExitCode,
    NodeTarget,
    Terminal,
    TransitionKind,
)
from triolet.storage.model.parameters import parameters_of
from triolet.storage.model.status import BatchStatus, IllegalTransition

CONTEXT = '{"rows":7}'


@pytest.fixture
def opened(client: Client) -> Opened:
    """An execution with one open step 1 at node load."""
    return client.open(first=next_step("load"))


def chunk(version: int, step_id: int = 1, checkpoint: str = "{}") -> CommitChunk:
    return CommitChunk(
        execution_id=1,
        owner_id=1,
        step_id=step_id,
        version=version,
        counts=Counts(read=version),
        checkpoint=checkpoint,
    )


def test_an_advance_without_parts_only_tells_the_time(
    client: Client, opened: Opened
) -> None:
    before = client.dump()

    assert client.advance(opened) == Advanced(NOON)
    assert client.dump() == before


def test_an_unknown_execution_does_not_advance(client: Client) -> None:
    client.owner()

    assert client.refusal(Advance(execution_id=4, owner_id=1)) == ExecutionNotFound(4)


def test_a_result_is_stored_whole(client: Client, opened: Opened) -> None:
    before = client.step(1)
    client.clock.now += 9
    end = step_end(
        1,
        status=BatchStatus.FAILED,
        exit_code="BAD_ROWS",
        counts=SOME_COUNTS,
        context=CONTEXT,
        failure=FAILURE,
    )

    client.advance(opened, finish=end)

    assert client.step(1) == evolve(
        before,
        status=BatchStatus.FAILED,
        exit_code="BAD_ROWS",
        counts=SOME_COUNTS,
        context=CONTEXT,
        failure=FAILURE,
        ended_at=NOON + 9,
        version=3,
    )


def test_a_result_and_the_next_start_are_one_command(
    client: Client, opened: Opened
) -> None:
    reply = client.advance(
        opened, finish=step_end(1, decision=folded()), start=next_step("report")
    )

    assert reply == Advanced(NOON, StepStarted(2, NOON))
    assert client.step(1).status is BatchStatus.COMPLETED
    assert client.step(2).status is BatchStatus.STARTED


def test_a_folded_decision_is_read_back_as_a_decision(
    client: Client, opened: Opened
) -> None:
    client.clock.now += 9
    client.advance(
        opened, finish=step_end(1, exit_code="SOME", decision=folded(sequence=4))
    )

    assert client.step(1).decision == Decision(
        execution_id=1,
        sequence=4,
        source="load",
        visit=1,
        step_id=1,
        kind=TransitionKind.STEP_EXIT,
        outcome="SOME",
        target=Terminal.COMPLETE,
        digest=digest_of(client.step(1)),
        fingerprint=definition().fingerprint,
        reused=None,
        decided_at=NOON + 9,
    )
    assert client.dump().decisions == ()


def test_a_result_without_context_keeps_the_one_before(
    client: Client, opened: Opened
) -> None:
    client.advance(
        opened, finish=step_end(1, status=BatchStatus.FAILED, context=CONTEXT)
    )
    client.fail(opened)
    again = client.open()
    step_id = client.start(again, inherit=1)

    client.advance(again, finish=step_end(step_id))

    assert client.step(step_id).context == CONTEXT


def test_a_failure_is_never_taken_back(client: Client, opened: Opened) -> None:
    stopping = {"version": 1, "status": BatchStatus.STOPPING, "failure": FAILURE}
    client.advance(opened, finish=step_end(1, **stopping))
    client.advance(opened, end=job_end(BatchStatus.STOPPING, failure=FAILURE))

    client.advance(
        opened,
        finish=step_end(1, version=3, status=BatchStatus.STOPPED),
        end=job_end(BatchStatus.STOPPED),
    )

    assert client.step(1).failure == FAILURE
    assert client.execution(1).failure == FAILURE


def test_an_end_time_stands(client: Client, opened: Opened) -> None:
    client.advance(opened, finish=step_end(1, status=BatchStatus.FAILED))
    client.clock.now += 9

    abandoned = step_end(1, version=3, status=BatchStatus.ABANDONED)
    client.advance(opened, finish=abandoned)

    assert client.step(1).ended_at == NOON


def test_a_decision_in_the_steps_row_stands(client: Client, opened: Opened) -> None:
    failed = step_end(1, status=BatchStatus.FAILED, decision=folded())
    client.advance(opened, finish=failed)

    abandoned = step_end(1, version=3, status=BatchStatus.ABANDONED)
    client.advance(opened, finish=abandoned)

    decision = client.step(1).decision
    assert decision is not None
    assert decision.sequence == 1


def test_an_unknown_outcome_has_no_end_time(client: Client, opened: Opened) -> None:
    unknown = step_end(1, status=BatchStatus.UNKNOWN, exit_code="UNKNOWN")

    client.advance(opened, finish=unknown, end=job_end(BatchStatus.UNKNOWN))

    assert client.step(1).ended_at is None
    assert client.execution(1).ended_at is None
    assert client.execution(1).status is BatchStatus.UNKNOWN


def test_a_stale_version_is_refused(client: Client, opened: Opened) -> None:
    refusal = client.refusal(client.advancing(opened, finish=step_end(1, version=2)))

    assert refusal == StaleVersion(expected=2, actual=1)


def test_a_result_is_accepted_once(client: Client, opened: Opened) -> None:
    finish = client.advancing(opened, finish=step_end(1))
    client.ask(finish)

    assert client.refusal(finish) == StaleVersion(expected=1, actual=3)


def test_the_version_is_looked_at_before_the_transition(
    client: Client, opened: Opened
) -> None:
    illegal = step_end(1, version=8, status=BatchStatus.STARTED)

    assert client.refusal(client.advancing(opened, finish=illegal)) == StaleVersion(
        expected=8, actual=1
    )


@pytest.mark.parametrize("step_id", [2, 9])
def test_a_step_of_another_execution_is_unknown(
    client: Client, opened: Opened, step_id: int
) -> None:
    client.open(parameters_of({"day": "other"}), first=next_step("load"))
    unknown = StepUnknown(step_id)

    assert client.refusal(client.advancing(opened, begin=step_id)) == unknown
    finish = client.advancing(opened, finish=step_end(step_id))
    assert client.refusal(finish) == unknown
    assert client.refusal(chunk(1, step_id)) == unknown


def test_a_starting_step_begins(client: Client, opened: Opened) -> None:
    step_id = client.start(opened, "report", starting=True)
    client.clock.now += 9

    reply = client.advance(opened, begin=step_id)

    step = client.step(step_id)
    assert reply == Advanced(NOON + 9)
    assert (step.status, step.version) == (BatchStatus.STARTED, 1)
    assert (step.created_at, step.started_at) == (NOON, NOON + 9)


def test_only_a_starting_step_begins(client: Client, opened: Opened) -> None:
    refusal = client.refusal(client.advancing(opened, begin=1))

    assert refusal == IllegalTransition(BatchStatus.STARTED, BatchStatus.STARTED)


def test_a_step_may_begin_and_end_in_one_command(
    client: Client, opened: Opened
) -> None:
    step_id = client.start(opened, "report", starting=True)
    early = client.advancing(opened, begin=step_id, finish=step_end(step_id, version=0))

    assert client.refusal(early) == StaleVersion(expected=0, actual=1)
    client.advance(opened, begin=step_id, finish=step_end(step_id, version=1))

    assert client.step(step_id).version == 3
    assert client.step(step_id).started_at == NOON


def test_a_step_may_begin_while_another_ends(client: Client, opened: Opened) -> None:
    step_id = client.start(opened, "report", starting=True)

    client.advance(opened, begin=step_id, finish=step_end(1))

    assert client.step(step_id).status is BatchStatus.STARTED
    assert client.step(1).status is BatchStatus.COMPLETED


def test_a_decision_is_stored_with_a_row_of_its_own(
    client: Client, opened: Opened
) -> None:
    new = new_decision(
        2,
        source="load",
        visit=3,
        step_id=1,
        kind=TransitionKind.COMPLETED_STEP_REUSE,
        target=NodeTarget("report"),
        reused=DecisionRef(1, 7),
    )

    client.advance(opened, decisions=(new,))

    assert client.dump().decisions == (
        Decision(
            execution_id=1,
            sequence=2,
            source="load",
            visit=3,
            step_id=1,
            kind=TransitionKind.COMPLETED_STEP_REUSE,
            outcome="YES",
            target=NodeTarget("report"),
            digest=DIGEST,
            fingerprint=definition().fingerprint,
            reused=DecisionRef(1, 7),
            decided_at=NOON,
        ),
    )


def test_a_sequence_number_is_given_once(client: Client, opened: Opened) -> None:
    client.advance(opened, decisions=(new_decision(1),))
    again = new_decision(1, source="other")

    refusal = client.refusal(client.advancing(opened, decisions=(again,)))

    assert refusal == DuplicateStep("other")


def test_a_folded_decision_takes_its_sequence_number(
    client: Client, opened: Opened
) -> None:
    client.advance(opened, finish=step_end(1, decision=folded(1)))

    refusal = client.refusal(client.advancing(opened, decisions=(new_decision(1),)))

    assert refusal == DuplicateStep("enough")


def test_later_visits_take_numbers_of_their_own(client: Client, opened: Opened) -> None:
    client.advance(opened, finish=step_end(1, decision=folded(1)))
    client.advance(opened, decisions=(new_decision(2, visit=2),))

    again = client.advancing(opened, decisions=(new_decision(2, visit=3),))
    step_id = client.start(opened, "load", visit=2)
    both = client.advancing(
        opened,
        finish=step_end(step_id, decision=folded(3)),
        decisions=(new_decision(3, visit=2, source="again"),),
    )

    assert client.refusal(again) == DuplicateStep("enough")
    assert client.refusal(both) == DuplicateStep("again")


def test_sequence_numbers_within_one_command_differ(
    client: Client, opened: Opened
) -> None:
    twice = client.advancing(
        opened, decisions=(new_decision(2), new_decision(2, source="again"))
    )
    both = client.advancing(
        opened,
        finish=step_end(1, decision=folded(1)),
        decisions=(new_decision(1, source="again"),),
    )

    assert client.refusal(twice) == DuplicateStep("again")
    assert client.refusal(both) == DuplicateStep("again")


def test_a_decision_cannot_cite_a_step_that_is_not_there(
    client: Client, opened: Opened
) -> None:
    citing = client.advancing(opened, decisions=(new_decision(step_id=5),))

    assert client.refusal(citing) == StepUnknown(5)


def test_executions_number_their_decisions_apart(
    client: Client, opened: Opened
) -> None:
    other = client.open(parameters_of({"day": "other"}))

    client.advance(opened, decisions=(new_decision(1),))
    client.advance(other, decisions=(new_decision(1),))

    assert [one.execution_id for one in client.dump().decisions] == [1, 2]


def test_a_node_is_entered_once_per_visit(client: Client, opened: Opened) -> None:
    refusal = client.refusal(client.advancing(opened, start=next_step("load")))

    assert refusal == DuplicateStep("load")
    assert client.start(opened, "load", visit=2) == 2


def test_a_refused_entry_takes_the_result_beside_it_along(
    client: Client, opened: Opened
) -> None:
    command = client.advancing(
        opened, finish=step_end(1), start=next_step("load", limit=5)
    )

    assert client.refusal(command) == DuplicateStep("load")


def test_a_start_limit_refuses_the_start_only(client: Client, opened: Opened) -> None:
    client.fail(opened)
    again = client.open()
    step_id = client.start(again, "extract")

    reply = client.advance(
        again,
        finish=step_end(step_id),
        decisions=(new_decision(1),),
        start=next_step("load", limit=1),
    )

    assert reply == Advanced(NOON, StartLimitReached("load", 1))
    assert client.step(step_id).status is BatchStatus.COMPLETED
    assert len(client.dump().decisions) == 1
    assert len(client.dump().steps) == 2


def test_a_start_limit_counts_every_row_of_the_node_and_visit(
    client: Client, opened: Opened
) -> None:
    other = client.open(parameters_of({"day": "other"}), first=next_step("load"))
    for _ in range(2):
        client.fail(opened)
        opened = client.open()
        client.start(opened, "load", limit=3)
    client.fail(opened)
    opened = client.open()

    reply = client.advance(opened, start=next_step("load", limit=3))

    assert reply.start == StartLimitReached("load", 3)
    assert client.start(opened, "load", visit=2, limit=3) == 5
    client.fail(other)


def test_a_step_continues_an_earlier_attempt(client: Client, opened: Opened) -> None:
    client.ask(chunk(1, checkpoint='{"position":6}'))
    client.advance(
        opened,
        finish=step_end(
            1,
            version=2,
            status=BatchStatus.FAILED,
            counts=SOME_COUNTS,
            context=CONTEXT,
            failure=FAILURE,
        ),
    )
    client.fail(opened)
    again = client.open()
    client.clock.now += 9

    step = client.step(client.start(again, "load", inherit=1))

    assert (step.counts, step.context) == (SOME_COUNTS, CONTEXT)
    assert step.checkpoint == '{"position":6}'
    assert (step.status, step.exit_code) == (BatchStatus.STARTED, ExitCode.UNKNOWN)
    assert (step.failure, step.decision, step.version) == (None, None, 1)
    assert (step.created_at, step.started_at) == (NOON + 9, NOON + 9)


def test_a_step_continues_what_the_same_command_finished(
    client: Client, opened: Opened
) -> None:
    reply = client.advance(
        opened,
        finish=step_end(1, counts=SOME_COUNTS, context=CONTEXT),
        start=next_step("load", visit=2, inherit=1),
    )

    assert reply.start == StepStarted(2, NOON)
    assert client.step(2).counts == SOME_COUNTS
    assert client.step(2).context == CONTEXT


@pytest.mark.parametrize("inherit", [2, 9])
def test_a_step_continues_nothing_of_another_instance(
    client: Client, opened: Opened, inherit: int
) -> None:
    client.open(parameters_of({"day": "other"}), first=next_step("report"))

    refusal = client.refusal(
        client.advancing(opened, start=next_step("report", inherit=inherit))
    )

    assert refusal == StepUnknown(inherit)


def test_an_end_is_stored_whole(client: Client, opened: Opened) -> None:
    before = client.execution(1)
    client.clock.now += 9
    end = job_end(BatchStatus.FAILED, counts=SOME_COUNTS, failure=FAILURE)

    client.advance(opened, end=end)

    assert client.execution(1) == evolve(
        before,
        status=BatchStatus.FAILED,
        exit_code="FAILED",
        counts=SOME_COUNTS,
        failure=FAILURE,
        ended_at=NOON + 9,
        version=3,
    )


def test_nothing_advances_after_the_end(client: Client, opened: Opened) -> None:
    client.advance(opened, end=job_end())

    refusal = client.refusal(client.advancing(opened, finish=step_end(1)))

    assert refusal.code == "lease_lost"


def test_a_tasklet_ends_at_version_three_and_each_chunk_adds_one(
    client: Client, opened: Opened
) -> None:
    assert client.ask(chunk(1)) == ChunkCommitted(NOON)
    client.ask(chunk(2))
    client.ask(chunk(3))
    client.advance(opened, finish=step_end(1, version=4), start=next_step("report"))
    client.advance(opened, finish=step_end(2), end=job_end())

    assert [step.version for step in client.dump().steps] == [6, 3]
    assert client.execution(1).version == 3


def test_a_chunk_replaces_counts_and_checkpoint(client: Client, opened: Opened) -> None:
    before = client.step(1)

    client.ask(chunk(1, checkpoint='{"position":1}'))
    client.ask(chunk(2, checkpoint='{"position":2}'))

    assert client.step(1) == evolve(
        before, counts=Counts(read=2), checkpoint='{"position":2}', version=3
    )


def test_a_chunk_of_a_stale_version_is_refused(client: Client, opened: Opened) -> None:
    client.ask(chunk(1))

    assert client.refusal(chunk(1)) == StaleVersion(expected=1, actual=2)


@pytest.mark.parametrize(
    "status", [BatchStatus.STOPPING, BatchStatus.COMPLETED, BatchStatus.UNKNOWN]
)
def test_only_a_started_step_commits_chunks(
    client: Client, opened: Opened, status: BatchStatus
) -> None:
    client.advance(opened, finish=step_end(1, status=status))

    refusal = client.refusal(chunk(1))

    assert refusal == IllegalTransition(status, BatchStatus.STARTED)


def test_a_starting_step_commits_no_chunks(client: Client, opened: Opened) -> None:
    step_id = client.start(opened, "report", starting=True)

    refusal = client.refusal(chunk(0, step_id))

    assert refusal == IllegalTransition(BatchStatus.STARTING, BatchStatus.STARTED)


def test_a_clock_that_stepped_back_does_not_end_rows_before_they_began(
    client: Client, opened: Opened
) -> None:
    client.start(opened, "report", starting=True)
    client.clock.now -= 5

    reply = client.advance(opened, begin=2, finish=step_end(1), end=job_end())

    assert reply.at == NOON - 5
    assert client.step(1).ended_at == NOON
    assert client.step(2).started_at == NOON
    assert client.execution(1).ended_at == NOON


def test_rows_that_begin_after_the_clock_stepped_back_have_its_time(
    client: Client, opened: Opened
) -> None:
    client.clock.now -= 5

    reply = client.advance(opened, start=next_step("report"))

    assert reply.start == StepStarted(2, NOON - 5)
    assert client.step(2).created_at == NOON - 5
    assert client.step(2).counts == NO_COUNTS
