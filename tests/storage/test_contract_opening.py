"""The contract of OpenExecution: instance, history, every reason to refuse."""

import pytest

from tests.storage.backends import NOON, abandon
from tests.storage.client import (
    DAY,
    FACTS,
    JOB,
    LEASE,
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
    AlreadyRunning,
    DefinitionDrift,
    IncompatibleDefinition,
    InstanceAbandoned,
    InstanceComplete,
    NotRestartable,
    Opened,
    OutcomeUnresolved,
    OwnerUnknown,
    Snapshot,
    StepStarted,
    StepUnknown,
)
from triolet.storage.commands.previewing import PreviewOpening
from triolet.storage.dump import StoredDefinition, StoredInstance
from triolet.storage.model.errors import InvalidParameter
from triolet.storage.model.execution import (
    NO_COUNTS,
    DecisionRef,
    ExitCode,
    JobExecution,
    JobInstance,
    TransitionKind,
)
from triolet.storage.model.parameters import (
    JobParameter,
    ParameterKind,
    ParameterSet,
    parameters_of,
)
from triolet.storage.model.partition import CopiedPlan, NewPartition
from triolet.storage.model.status import BatchStatus

OTHER_DAY = parameters_of({"day": "2026-12-01"})


def parameter(name: str, value: str | int, *, identifying: bool = True) -> JobParameter:
    kind = ParameterKind.of(name, value)
    return JobParameter(name, kind, value, identifying=identifying)


def test_a_first_attempt_makes_instance_execution_and_definition(
    client: Client,
) -> None:
    opened = client.open()

    assert opened == Opened(
        instance_id=1,
        execution_id=1,
        attempt=1,
        run=None,
        at=NOON,
        restart_of=None,
        took_over=None,
        snapshot=Snapshot(),
        first=None,
    )
    dump = client.dump()
    assert dump.definitions == (
        StoredDefinition(id=1, job=JOB, definition=definition(), registered_at=NOON),
    )
    instance = JobInstance(
        id=1, job=JOB, key=DAY.instance_key(JOB), run=None, created_at=NOON
    )
    assert dump.instances == (StoredInstance(instance=instance, parameters=DAY),)
    assert dump.executions == (
        JobExecution(
            id=1,
            instance_id=1,
            attempt=1,
            restart_of=None,
            status=BatchStatus.STARTED,
            exit_code=ExitCode.UNKNOWN,
            counts=NO_COUNTS,
            failure=None,
            owner_id=1,
            created_at=NOON,
            started_at=NOON,
            ended_at=None,
            version=1,
            parameters=DAY,
            revision="1",
            fingerprint=definition().fingerprint,
        ),
    )


def test_the_entry_step_starts_with_a_new_instance(client: Client) -> None:
    opened = client.open(first=next_step("load"))

    assert opened.first == StepStarted(1, NOON)
    assert opened.snapshot == Snapshot()
    step = client.step(1)
    assert (step.node, step.visit, step.name) == ("load", 1, "load it")
    assert (step.status, step.version) == (BatchStatus.STARTED, 1)
    assert step.exit_code == ExitCode.UNKNOWN
    assert step.counts == NO_COUNTS
    assert (step.created_at, step.started_at, step.ended_at) == (NOON, NOON, None)


def test_an_entry_step_with_listeners_begins_as_starting(client: Client) -> None:
    client.open(first=next_step("load", starting=True))

    step = client.step(1)
    assert (step.status, step.version) == (BatchStatus.STARTING, 0)
    assert (step.created_at, step.started_at) == (NOON, None)


def test_the_entry_step_is_not_started_by_a_restart(client: Client) -> None:
    client.fail(client.open(first=next_step("load")))

    again = client.open(first=next_step("load"))

    assert again.first is None
    assert [step.node for step in client.dump().steps] == ["load"]


def test_the_entry_step_of_a_new_instance_inherits_nothing(client: Client) -> None:
    client.open(first=next_step("load"))

    refusal = client.refusal(
        client.opening(OTHER_DAY, first=next_step("load", inherit=1))
    )

    assert refusal == StepUnknown(1)


def test_an_unknown_owner_opens_nothing(client: Client) -> None:
    assert client.refusal(client.opening(owner_id=3)) == OwnerUnknown(3)


def test_equal_parameters_are_the_same_instance(client: Client) -> None:
    client.fail(client.open())

    again = client.open()

    assert (again.instance_id, again.execution_id) == (1, 2)
    assert (again.attempt, again.restart_of) == (2, 1)


@pytest.mark.parametrize(
    "parameters", [OTHER_DAY, ParameterSet(), parameters_of({"day": 20261130})]
)
def test_other_parameters_are_another_instance(
    client: Client, parameters: ParameterSet
) -> None:
    client.open()

    assert client.open(parameters).instance_id == 2


def test_the_same_parameters_of_another_job_are_another_instance(
    client: Client,
) -> None:
    client.open()

    assert client.open(job="import").instance_id == 2


def test_parameters_that_do_not_identify_are_stored_with_the_execution(
    client: Client,
) -> None:
    day = parameter("day", "2026-11-30")
    client.fail(client.open(ParameterSet((day,))))
    both = ParameterSet((day, parameter("note", "second try", identifying=False)))

    again = client.open(both)

    assert again.instance_id == 1
    assert client.execution(2).parameters == both
    assert client.dump().instances[0].parameters == ParameterSet((day,))


def test_parameters_that_do_not_identify_are_no_part_of_the_instance(
    client: Client,
) -> None:
    day = parameter("day", "2026-11-30")
    both = ParameterSet((day, parameter("note", "first try", identifying=False)))

    client.fail(client.open(both))

    assert client.dump().instances[0].parameters == ParameterSet((day,))
    assert client.open(ParameterSet((day,))).instance_id == 1


def test_an_execution_names_the_revision_that_registered_its_plan(
    client: Client,
) -> None:
    client.open(definition=definition("f", revision="2026.11"))

    assert client.execution(1).revision == "2026.11"


def test_a_secret_value_is_never_stored(client: Client) -> None:
    secret = JobParameter("token", ParameterKind.STRING, "hunter2", True, True)
    client.fail(client.open(ParameterSet((secret,))))

    blank = JobParameter("token", ParameterKind.STRING, "", True, True)
    assert client.execution(1).parameters == ParameterSet((blank,))
    assert client.dump().instances[0].parameters == ParameterSet((blank,))
    assert client.open(ParameterSet((secret,))).instance_id == 1


def test_a_complete_instance_is_not_run_twice(client: Client) -> None:
    opened = client.open()
    client.clock.now += 5
    client.advance(opened, end=job_end())

    refusal = client.refusal(client.opening())

    assert refusal == InstanceComplete(JOB, 1, NOON + 5)


def test_an_abandoned_instance_is_not_restarted(client: Client) -> None:
    client.fail(client.open())
    abandon(client.backend, 1)

    assert client.refusal(client.opening()) == InstanceAbandoned(JOB, 1)


@pytest.mark.parametrize("status", [BatchStatus.STOPPED, BatchStatus.FAILED])
def test_an_attempt_that_must_be_the_only_one_is_not_followed(
    client: Client, status: BatchStatus
) -> None:
    opened = client.open(restartable=False)
    client.advance(opened, end=job_end(status))

    command = client.opening(restartable=False)
    assert client.refusal(command) == NotRestartable(JOB, 1)
    assert client.refusal(PreviewOpening(command)) == NotRestartable(JOB, 1)
    assert client.open(anew=True, restartable=False).instance_id == 2


def test_an_unresolved_outcome_blocks_the_instance(client: Client) -> None:
    client.advance(client.open(), end=job_end(BatchStatus.UNKNOWN))

    assert client.refusal(client.opening()) == OutcomeUnresolved(1)


@pytest.mark.parametrize("status", [BatchStatus.STOPPED, BatchStatus.FAILED])
def test_a_stopped_or_failed_instance_goes_on(
    client: Client, status: BatchStatus
) -> None:
    client.advance(client.open(), end=job_end(status))

    assert client.open().attempt == 2


@pytest.mark.parametrize("status", [BatchStatus.STARTED, BatchStatus.STOPPING])
def test_a_running_instance_is_refused_with_its_owner(
    client: Client, status: BatchStatus
) -> None:
    opened = client.open()
    if status is BatchStatus.STOPPING:
        client.advance(opened, end=job_end(status))
    client.owner()
    client.clock.now += 10_000_000

    refusal = client.refusal(client.opening())

    assert refusal == AlreadyRunning(1, 1, FACTS, LEASE - 10_000_000)


def test_an_owner_does_not_take_over_from_itself(client: Client) -> None:
    client.open()

    assert client.refusal(client.opening()) == AlreadyRunning(1, 1, FACTS, LEASE)


def test_a_known_definition_is_reused_under_another_label(client: Client) -> None:
    client.open()

    client.open(OTHER_DAY, definition=definition("f", revision="2"))

    assert len(client.dump().definitions) == 1
    assert client.execution(2).revision == "1"


def test_a_label_names_one_definition_only(client: Client) -> None:
    client.open()

    refusal = client.refusal(client.opening(OTHER_DAY, definition=definition("g")))

    assert refusal == DefinitionDrift(JOB, "1", definition("f").manifest)


def test_another_job_may_use_the_same_label(client: Client) -> None:
    client.open()

    client.open(job="import", definition=definition("g"))

    assert [one.job for one in client.dump().definitions] == [JOB, "import"]


def test_an_attempt_is_continued_with_its_own_definition_only(client: Client) -> None:
    client.fail(client.open())

    refusal = client.refusal(client.opening(definition=definition("g", revision="2")))

    assert refusal == IncompatibleDefinition(JOB, 1, definition("f").manifest)


def test_refusals_have_an_order(client: Client) -> None:
    client.advance(client.open(), end=job_end())
    drifting, changed = definition("g"), definition("g", revision="2")

    nobody = client.refusal(client.opening(owner_id=5, definition=drifting))
    drift = client.refusal(client.opening(definition=drifting))
    complete = client.refusal(client.opening(definition=changed))

    assert nobody == OwnerUnknown(5)
    assert isinstance(drift, DefinitionDrift)
    assert isinstance(complete, InstanceComplete)


def test_launching_anew_numbers_the_runs_of_a_job(client: Client) -> None:
    first = client.open(anew=True)
    second = client.open(OTHER_DAY, anew=True)
    plain = client.open()

    assert (first.run, second.run, plain.run) == (1, 2, None)
    assert [one.instance.run for one in client.dump().instances] == [1, 2, None]
    assert client.execution(1).parameters == DAY.with_run(1)
    assert client.dump().instances[1].parameters == OTHER_DAY.with_run(2)


def test_launching_anew_needs_no_end_of_what_runs(client: Client) -> None:
    client.open()

    opened = client.open(anew=True)

    assert (opened.instance_id, opened.attempt, opened.run) == (2, 1, 1)
    assert opened.snapshot == Snapshot()


def test_run_numbers_are_counted_per_job(client: Client) -> None:
    client.open(anew=True)

    assert client.open(job="import", anew=True).run == 1


def test_launching_anew_skips_a_number_that_is_taken(client: Client) -> None:
    client.open(DAY.with_run(1))

    assert client.open(anew=True).run == 2


def test_a_numbered_run_is_continued_by_its_parameters(client: Client) -> None:
    client.fail(client.open(anew=True))

    again = client.open(DAY.with_run(1))

    assert (again.instance_id, again.attempt) == (1, 2)


def test_a_numbered_run_cannot_be_numbered_again(client: Client) -> None:
    client.owner()

    refusal = client.refusal(client.opening(DAY.with_run(1), anew=True))

    assert isinstance(refusal, InvalidParameter)


def test_a_restart_sees_the_latest_row_of_each_node_and_visit(client: Client) -> None:
    first = client.open(first=next_step("load"))
    client.advance(first, finish=step_end(1, status=BatchStatus.FAILED))
    client.start(first, "extract")
    client.start(first, "extract", visit=2)
    client.fail(first)
    second = client.open()
    client.start(second, "load")
    client.fail(second)

    snapshot = client.open().snapshot

    found = [(step.node, step.visit, step.id) for step in snapshot.steps]
    assert found == [("extract", 1, 2), ("extract", 2, 3), ("load", 1, 4)]
    assert snapshot.starts == (("extract", 1, 1), ("extract", 2, 1), ("load", 1, 2))
    assert snapshot.steps == tuple(client.step(step_id) for step_id in (2, 3, 4))


def test_a_restart_sees_the_latest_plan_of_each_node_and_visit(client: Client) -> None:
    first = client.open()
    plan = (NewPartition("eu", "{}"), NewPartition("us", "{}"))
    for visit in (1, 2):
        client.start(first, "parts", visit=visit, plan=plan[:visit])
    client.fail(first)
    second = client.open()
    client.start(second, "parts", plan=CopiedPlan(1))
    client.fail(second)

    snapshot = client.open().snapshot

    found = [(one.visit, one.manager_id, one.key) for one in snapshot.partitions]
    assert found == [(2, 2, "eu"), (2, 2, "us"), (1, 3, "eu")]
    assert [one.key for one in snapshot.partitions_of("parts")] == ["eu"]
    assert [one.key for one in snapshot.partitions_of("parts", 2)] == ["eu", "us"]


def test_a_restart_sees_the_transition_that_a_result_was_committed_with(
    client: Client,
) -> None:
    first = client.open(first=next_step("load"))
    client.advance(first, finish=step_end(1, exit_code="GOOD", decision=folded(1)))
    client.fail(first)

    (step,) = client.open().snapshot.steps

    assert step.decision is not None
    assert step.decision.kind is TransitionKind.STEP_EXIT
    assert (step.decision.source, step.decision.step_id) == ("load", 1)
    assert step.decision.outcome == "GOOD"
    assert step.decision.digest == digest_of(step)
    assert step.decision.fingerprint == definition().fingerprint
    assert step.decision.decided_at == step.ended_at
    assert step.decision.reused is None


def test_a_restart_sees_the_deciders_answers_newest_first(client: Client) -> None:
    first = client.open(first=next_step("load"))
    reuse = new_decision(
        3,
        source="load",
        step_id=1,
        kind=TransitionKind.COMPLETED_STEP_REUSE,
        reused=DecisionRef(1, 1),
    )
    client.advance(first, decisions=(new_decision(2), reuse, new_decision(1)))
    client.fail(first)
    second = client.open()
    client.advance(second, decisions=(new_decision(1, outcome="NO"),))
    client.fail(second)

    decisions = client.open().snapshot.decisions

    found = [(one.execution_id, one.sequence, one.outcome) for one in decisions]
    assert found == [(2, 1, "NO"), (1, 2, "YES"), (1, 1, "YES")]


def test_a_restart_sees_nothing_of_other_instances(client: Client) -> None:
    other = client.open(OTHER_DAY, first=next_step("load"))
    client.advance(
        other,
        finish=step_end(1, counts=SOME_COUNTS, decision=folded(1)),
        decisions=(new_decision(2),),
    )
    client.fail(client.open())

    assert client.open().snapshot == Snapshot()
