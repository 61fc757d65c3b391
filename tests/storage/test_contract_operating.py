"""The contract of what operators do: stop, abandon, recover, and the audit record."""

from typing import Any

import pytest
from attrs import evolve

from tests.storage.backends import NOON
from tests.storage.client import (
    FACTS,
    FAILURE,
    LEASE,
    SOME_COUNTS,
    Client,
    job_end,
    next_step,
    step_end,
)
from tests.strategies import evidence_of
from triolet.storage.commands import (
    Abandon,
    ActionNotAllowed,
    AlreadyRunning,
    BeginStopping,
    Diagnose,
    EvidenceChanged,
    ExecutionNotFound,
    FindStops,
    InstanceAbandoned,
    LeaseLost,
    ListOperations,
    NotLatestAttempt,
    Opened,
    Operated,
    OperationIdConflict,
    OperatorRequest,
    Recover,
    RequestStop,
    StaleVersion,
    StoppingBegun,
    StopsFound,
)
from triolet.storage.model.errors import InvalidValue, Rejection, TrioletError
from triolet.storage.model.execution import ExitCode, Failure
from triolet.storage.model.operation import (
    Action,
    Directive,
    Operation,
    RecoveryDecision,
    StopRequest,
)
from triolet.storage.model.status import BatchStatus, FailureCategory

S = BatchStatus
WORDS = {"actor": "eve", "operation_id": "op-1"}


def stop(execution_id: int = 1, **changes: Any) -> RequestStop:
    return RequestStop(**{"execution_id": execution_id, **WORDS, **changes})


def abandon(execution_id: int = 1, **changes: Any) -> Abandon:
    return Abandon(**{"execution_id": execution_id, **WORDS, **changes})


def recover(client: Client, execution_id: int = 1, **changes: Any) -> Recover:
    """Make the command of an operator that has seen the execution as it is now."""
    dump = client.dump()
    execution = dump.executions[execution_id - 1]
    fields: dict[str, Any] = {
        "execution_id": execution_id,
        "expected_version": execution.version,
        "evidence": evidence_of(dump, execution).digest,
        "directive": Directive.MARK_FAILED,
        **WORDS,
    }
    return Recover(**(fields | changes))


def audited(client: Client, request: OperatorRequest) -> TrioletError:
    """Have a request refused; prove that only its audit record was written."""
    before = client.dump()
    (outcome,) = client.apply(request)
    after = client.dump()
    assert isinstance(outcome, Rejection), outcome
    assert evolve(after, operations=before.operations) == before
    assert after.operations[-1].refusal == outcome
    assert len(after.operations) == len(before.operations) + 1
    return outcome


def unknown(client: Client) -> Opened:
    """Bring execution 1 to UNKNOWN, with an UNKNOWN step 1."""
    opened = client.open(first=next_step())
    end = step_end(1, status=S.UNKNOWN, exit_code="UNKNOWN", failure=FAILURE)
    client.advance(opened, finish=end, end=job_end(S.UNKNOWN))
    return opened


# Stop


def test_a_stop_is_pending_and_changes_nothing_else(client: Client) -> None:
    client.open()
    before = client.dump()

    reply = client.ask(stop(reason="too slow"))

    pending = StopRequest(
        execution_id=1,
        owner_id=1,
        actor="eve",
        reason="too slow",
        requested_at=NOON,
    )
    assert client.dump() == evolve(
        before, stops=(pending,), operations=(reply.operation,)
    )
    assert reply == Operated(
        Operation(
            action=Action.STOP,
            operation_id="op-1",
            execution_id=1,
            actor="eve",
            reason="too slow",
            digest=stop(reason="too slow").digest,
            observed_version=1,
            prior=S.STARTED,
            result=S.STARTED,
            refusal=None,
            requested_at=NOON,
        )
    )


def test_a_later_stop_takes_the_place_of_an_earlier_one(client: Client) -> None:
    client.open()
    client.ask(stop())
    client.clock.now += 5

    client.ask(stop(operation_id="op-2", actor="adam"))

    (pending,) = client.dump().stops
    assert (pending.actor, pending.requested_at) == ("adam", NOON + 5)


@pytest.mark.parametrize("status", [S.STOPPING, S.STOPPED, S.FAILED, S.COMPLETED])
def test_what_is_stopping_or_has_ended_is_stopped_without_effect(
    client: Client, status: BatchStatus
) -> None:
    opened = client.open()
    client.advance(opened, end=job_end(status, failure=FAILURE))

    operation = client.ask(stop()).operation

    assert client.dump().stops == ()
    assert (operation.prior, operation.result) == (status, status)


def test_what_is_unknown_cannot_be_stopped(client: Client) -> None:
    unknown(client)

    assert audited(client, stop()) == ActionNotAllowed(Action.STOP, 1, S.UNKNOWN)


def test_an_owner_finds_the_stops_of_its_own_active_executions(client: Client) -> None:
    opened = client.open()
    client.ask(stop())
    client.owner()

    assert client.ask(FindStops(1)) == StopsFound((1,))
    assert client.ask(FindStops(2)) == StopsFound(())

    client.ask(BeginStopping(1, 1))
    assert client.ask(FindStops(1)) == StopsFound((1,))
    client.advance(opened, end=job_end(S.STOPPED))
    assert client.ask(FindStops(1)) == StopsFound(())


def test_a_pending_stop_is_taken_in_as_stopping(client: Client) -> None:
    client.open()
    client.ask(stop())
    before = client.execution(1)

    assert client.ask(BeginStopping(1, 1)) == StoppingBegun(S.STOPPING)

    assert client.execution(1) == evolve(before, status=S.STOPPING, version=2)
    assert client.ask(BeginStopping(1, 1)) == StoppingBegun(S.STOPPING)
    assert client.execution(1).version == 2


def test_without_a_pending_stop_nothing_is_taken_in(client: Client) -> None:
    client.open()
    before = client.dump()

    assert client.ask(BeginStopping(1, 1)) == StoppingBegun(S.STARTED)

    assert client.dump() == before


def test_only_the_owner_takes_a_stop_in(client: Client) -> None:
    client.open()
    client.ask(stop())
    client.owner()

    refusal = client.refusal(BeginStopping(1, 2))

    assert refusal == LeaseLost(1, S.STARTED)


def test_what_a_dead_owner_left_with_a_pending_stop_is_stopped(client: Client) -> None:
    client.open(first=next_step())
    client.ask(stop())
    client.owner()

    opened = client.open(dead_owner=1)

    execution, step = client.execution(1), client.step(1)
    assert (execution.status, execution.exit_code) == (S.STOPPED, ExitCode.STOPPED)
    assert execution.failure is None
    assert execution.ended_at == NOON
    assert step.status is S.FAILED
    assert opened.took_over == 1


# Abandon


@pytest.mark.parametrize("status", [S.STOPPED, S.FAILED])
def test_what_may_be_restarted_may_be_abandoned(
    client: Client, status: BatchStatus
) -> None:
    opened = client.open()
    client.advance(opened, end=job_end(status, failure=FAILURE))
    before = client.execution(1)

    operation = client.ask(abandon()).operation

    after = client.execution(1)
    assert after == evolve(before, status=S.ABANDONED, version=before.version + 1)
    assert (operation.prior, operation.result) == (status, S.ABANDONED)
    assert client.refusal(client.opening()) == InstanceAbandoned("settlement", 1)


def test_what_is_abandoned_may_be_abandoned_again(client: Client) -> None:
    client.fail(client.open())
    client.ask(abandon())
    before = client.execution(1)

    operation = client.ask(abandon(operation_id="op-2")).operation

    assert client.execution(1) == before
    assert (operation.prior, operation.result) == (S.ABANDONED, S.ABANDONED)


@pytest.mark.parametrize("status", [S.STOPPING, S.COMPLETED, S.UNKNOWN])
def test_nothing_else_may_be_abandoned(client: Client, status: BatchStatus) -> None:
    opened = client.open()
    client.advance(opened, end=job_end(status))

    assert audited(client, abandon()) == ActionNotAllowed(Action.ABANDON, 1, status)


def test_an_earlier_attempt_is_not_abandoned(client: Client) -> None:
    client.fail(client.open())
    client.fail(client.open())

    assert audited(client, abandon()) == NotLatestAttempt(1, 2)


# Recover


@pytest.mark.parametrize(
    ("directive", "status"),
    [(Directive.MARK_FAILED, S.FAILED), (Directive.ABANDON, S.ABANDONED)],
)
def test_what_is_unknown_is_closed_as_the_operator_decides(
    client: Client, directive: Directive, status: BatchStatus
) -> None:
    unknown(client)
    before, step = client.execution(1), client.step(1)
    request = recover(client, directive=directive, reason="the bank has booked it")

    operation = client.ask(request).operation

    why = Failure(FailureCategory.STALE_RECOVERED, request.failure_id, code="recovered")
    after = client.execution(1)
    assert after == evolve(
        before,
        status=status,
        exit_code=ExitCode.FAILED,
        failure=why,
        ended_at=NOON,
        version=before.version + 2,
    )
    assert client.step(1) == evolve(
        step,
        status=S.FAILED,
        exit_code=ExitCode.FAILED,
        ended_at=NOON,
        version=step.version + 2,
    )
    assert (operation.prior, operation.result) == (S.UNKNOWN, status)
    assert client.dump().recoveries == (
        RecoveryDecision(
            execution_id=1,
            version=before.version,
            prior=S.UNKNOWN,
            result=status,
            actor="eve",
            reason="the bank has booked it",
            evidence=request.evidence,
            decided_at=NOON,
        ),
    )


def test_what_is_recovered_as_failed_goes_on(client: Client) -> None:
    unknown(client)
    client.ask(recover(client))

    assert client.open().restart_of == 1


def test_an_execution_is_not_recovered_while_its_lease_runs(client: Client) -> None:
    client.open()
    client.clock.now += LEASE - 1

    assert audited(client, recover(client)) == AlreadyRunning(1, 1, FACTS, 1)


def test_an_execution_whose_lease_ran_out_is_recovered_with_its_steps(
    client: Client,
) -> None:
    client.open(first=next_step())
    client.clock.now += LEASE

    client.ask(recover(client))

    execution, step = client.execution(1), client.step(1)
    assert execution.failure is not None
    assert execution.failure.category is FailureCategory.STALE_RECOVERED
    assert (execution.status, step.status) == (S.FAILED, S.FAILED)
    assert step.failure == evolve(execution.failure, where="load")


def test_the_lease_of_an_owner_that_is_proved_dead_does_not_count(
    client: Client,
) -> None:
    client.open()

    client.ask(recover(client, dead_owner=1))

    assert client.execution(1).status is S.FAILED


def test_an_owner_does_not_recover_what_is_its_own(client: Client) -> None:
    client.open()
    client.clock.now += LEASE

    refusal = audited(client, recover(client, requester=1))

    assert refusal == AlreadyRunning(1, 1, FACTS, 0)


@pytest.mark.parametrize("status", [S.STOPPED, S.FAILED, S.COMPLETED])
def test_what_has_ended_is_not_recovered(client: Client, status: BatchStatus) -> None:
    opened = client.open()
    client.advance(opened, end=job_end(status, failure=FAILURE))

    refusal = audited(client, recover(client))

    assert refusal == ActionNotAllowed(Action.RECOVER, 1, status)


def test_a_recovery_rests_on_what_was_seen(client: Client) -> None:
    opened = client.open()
    request = recover(client)
    client.start(opened)
    client.clock.now += LEASE

    assert audited(client, request) == EvidenceChanged(1)


def test_the_lease_and_the_time_are_no_evidence(client: Client) -> None:
    client.open(first=next_step())
    (one,) = client.ask(Diagnose()).unresolved
    client.clock.now += LEASE
    (other,) = client.ask(Diagnose()).unresolved

    assert one.evidence.digest == other.evidence.digest
    assert (one.lease_left, other.lease_left) == (LEASE, 0)


def test_a_takeover_decides_nothing_that_is_unknown(client: Client) -> None:
    unknown(client)
    request = recover(client, directive=Directive.TAKE_OVER)

    refusal = audited(client, request)

    assert refusal == ActionNotAllowed(Action.RECOVER, 1, S.UNKNOWN)


def test_a_takeover_leaves_an_unknown_step_to_an_operator(client: Client) -> None:
    opened = client.open(first=next_step())
    client.advance(opened, finish=step_end(1, status=S.UNKNOWN))
    request = recover(client, directive=Directive.TAKE_OVER, dead_owner=1)

    refusal = audited(client, request)

    assert refusal == ActionNotAllowed(Action.RECOVER, 1, S.STARTED, unknown_step=True)


@pytest.mark.parametrize("asked", [False, True])
def test_a_takeover_keeps_apart_what_was_stopped_and_what_died(
    client: Client, asked: bool
) -> None:
    client.open()
    if asked:
        client.ask(stop())
    request = recover(
        client, directive=Directive.TAKE_OVER, dead_owner=1, operation_id="op-2"
    )

    operation = client.ask(request).operation

    assert operation.result is (S.STOPPED if asked else S.FAILED)
    assert client.execution(1).status is operation.result


# Requests and their record


def makers(client: Client) -> list[OperatorRequest]:
    return [
        stop(),
        abandon(operation_id="op-2"),
        recover(client, operation_id="op-3"),
    ]


def test_an_unknown_execution_is_refused_on_record(client: Client) -> None:
    client.open()

    for request in makers(client):
        assert audited(client, evolve(request, execution_id=9)) == ExecutionNotFound(9)


def test_a_changed_execution_is_refused_when_a_version_is_expected(
    client: Client,
) -> None:
    client.open()

    for request in makers(client):
        refusal = audited(client, evolve(request, expected_version=7))
        assert refusal == StaleVersion(7, 1)


def test_the_same_request_again_gives_the_recorded_outcome(client: Client) -> None:
    client.fail(client.open())
    first = client.ask(abandon())
    before = client.dump()

    again = client.ask(abandon(actor="adam"))

    assert again == evolve(first, replayed=True)
    assert client.dump() == before


def test_the_same_refused_request_again_is_refused_in_the_same_way(
    client: Client,
) -> None:
    opened = client.open()
    first = audited(client, recover(client))
    request = recover(client)
    client.advance(opened, end=job_end(S.STOPPED))

    assert client.refusal(request) == first


@pytest.mark.parametrize(
    "change", [{"execution_id": 2}, {"reason": "else"}, {"expected_version": 1}]
)
def test_an_operation_id_is_used_for_one_request(
    client: Client, change: dict[str, Any]
) -> None:
    client.open()
    client.ask(stop())

    assert client.refusal(stop(**change)) == OperationIdConflict("op-1")


def test_two_actions_may_not_have_one_operation_id(client: Client) -> None:
    client.fail(client.open())
    client.ask(stop())

    for other in (abandon(), recover(client)):
        assert client.refusal(other) == OperationIdConflict("op-1")
    missing = stop(9, operation_id="op-2")
    assert audited(client, missing) == ExecutionNotFound(9)
    refused = client.refusal(abandon(9, operation_id="op-2"))
    assert refused == OperationIdConflict("op-2")


def test_the_history_of_an_execution_is_in_order(client: Client) -> None:
    client.fail(client.open())
    client.ask(stop())
    client.ask(abandon(operation_id="op-2"))

    history = client.ask(ListOperations(1))

    assert [one.action for one in history.operations] == [Action.STOP, Action.ABANDON]
    assert history.operations == client.dump().operations
    assert (history.stop, history.recoveries) == (None, ())


def test_the_history_of_an_unknown_execution_is_refused(client: Client) -> None:
    assert client.refusal(ListOperations(1)) == ExecutionNotFound(1)


def test_refused_and_applied_requests_stand_in_one_batch(client: Client) -> None:
    client.open()
    missing = stop(9, operation_id="op-2")

    outcomes = client.apply(stop(), missing, abandon(operation_id="op-3"))

    assert isinstance(outcomes[0], Operated)
    assert outcomes[1:] == [
        ExecutionNotFound(9),
        ActionNotAllowed(Action.ABANDON, 1, S.STARTED),
    ]
    assert [one.applied for one in client.dump().operations] == [True, False, False]


@pytest.mark.parametrize(
    "word", [{"actor": ""}, {"actor": "a\nb"}, {"reason": "x" * 1025}, {"reason": " x"}]
)
def test_words_that_cannot_be_kept_are_refused_at_once(word: dict[str, Any]) -> None:
    with pytest.raises(InvalidValue):
        stop(**word)


# Diagnosis


def test_a_diagnosis_names_what_has_not_ended(client: Client) -> None:
    opened = client.open(first=next_step())
    client.advance(opened, finish=step_end(1, counts=SOME_COUNTS))
    client.start(opened, "report")
    client.ask(stop())

    (one,) = client.ask(Diagnose()).unresolved

    dump = client.dump()
    assert one.execution == dump.executions[0]
    assert one.instance == dump.instances[0].instance
    assert one.owner == FACTS
    assert one.lease_left == LEASE
    assert one.stop == dump.stops[0]
    assert one.steps == dump.steps[1:]
    assert one.evidence == evidence_of(dump, dump.executions[0])


def test_a_diagnosis_is_cut_to_its_limit(client: Client) -> None:
    client.open()
    client.open(anew=True)

    page = client.ask(Diagnose(limit=1))

    assert [one.execution.id for one in page.unresolved] == [1]
    assert page.more
    assert not client.ask(Diagnose(limit=2)).more


def test_what_has_ended_needs_no_diagnosis(client: Client) -> None:
    client.fail(client.open())

    assert client.ask(Diagnose()).unresolved == ()
    assert client.ask(Diagnose(1)).unresolved == ()
    assert client.refusal(Diagnose(2)) == ExecutionNotFound(2)
