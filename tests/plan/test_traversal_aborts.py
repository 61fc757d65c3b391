"""The last word of an attempt that cannot go on, and a result whose rows failed."""

import pytest
from attrs import evolve

from tests.plan.definitions import work
from tests.plan.driver import (
    BOOM,
    FAILED,
    Attempt,
    Instance,
    command_of,
    completed,
    decision,
    step,
)
from triolet.actors.plan.actions import Decide, RunStep
from triolet.actors.plan.definition import COMPLETE, StepListener
from triolet.storage.commands import Cursor
from triolet.storage.model.execution import Counts, Failure
from triolet.storage.model.status import BatchStatus

STOPPED, UNKNOWN = BatchStatus.STOPPED, BatchStatus.UNKNOWN
WAYS = [(STOPPED, None), (BatchStatus.FAILED, BOOM), (UNKNOWN, BOOM)]
AUDIT = StepListener("audit", before=work)

ways = pytest.mark.parametrize(("status", "failure"), WAYS)
known = pytest.mark.parametrize(("status", "failure"), WAYS[:2])


def insert(cursor: Cursor) -> None:
    cursor.execute("CREATE TABLE trade (id INTEGER)")


def tables(instance: Instance) -> list[str]:
    found = instance.backend.business.execute("SELECT name FROM sqlite_master")
    return [row[0] for row in found]


def lost(instance: Instance, *, write: bool = False) -> Attempt:
    """Bring an attempt to where the command with a's result was sent and got lost."""
    attempt = instance.attempt()
    attempt.until(RunStep, {})
    result = evolve(completed(), write=insert if write else None)
    command_of(attempt.engine.stepped(result))
    return attempt


# Without a command under way


@ways
def test_abort_with_nothing_open_writes_the_end_only(
    status: BatchStatus, failure: Failure | None
) -> None:
    instance = Instance([decision("d", {"GO": COMPLETE})])
    attempt = instance.attempt()
    attempt.until(Decide, {})

    command = attempt.abort(status, failure)

    assert command.finish is None
    assert command.decisions == ()
    assert instance.ends == [status]
    assert instance.dump.executions[0].failure == failure


@known
def test_abort_closes_an_open_step(
    status: BatchStatus, failure: Failure | None
) -> None:
    instance = Instance([step("a"), step("b")])
    attempt = instance.attempt()
    attempt.until(RunStep, {})

    attempt.abort(status, failure)

    (row,) = instance.dump.steps
    assert (row.status, row.failure) == (status, failure)
    assert row.exit_code == instance.dump.executions[0].exit_code == status
    assert instance.ends == [status]


@known
def test_abort_closes_a_step_that_never_began(
    status: BatchStatus, failure: Failure | None
) -> None:
    instance = Instance([step("a", listeners=[AUDIT])])
    attempt = instance.attempt()
    attempt.until(RunStep, {})

    command = attempt.abort(status, failure)

    assert (command.begin is not None) == (status is STOPPED)
    assert instance.steps == [("a", status)]
    assert instance.ends == [status]


@pytest.mark.parametrize("listeners", [[], [AUDIT]])
def test_abort_as_unknown_does_not_touch_the_open_step(
    listeners: list[StepListener],
) -> None:
    instance = Instance([step("a", listeners=listeners)])
    attempt = instance.attempt()
    attempt.until(RunStep, {})
    ((_, status),) = instance.steps

    command = attempt.abort(UNKNOWN, BOOM)

    assert command.finish is None
    assert instance.steps == [("a", status)]
    assert instance.ends == [UNKNOWN]


def test_abort_keeps_what_the_open_step_has_committed() -> None:
    instance = Instance([step("a")])
    attempt = instance.attempt()
    action = attempt.until(RunStep, {})
    assert isinstance(action, RunStep)
    action.step.counts = Counts(read=4)

    attempt.abort(STOPPED)

    assert instance.dump.steps[0].counts == Counts(read=4)
    assert instance.dump.executions[0].counts == Counts(read=4)


@known
def test_abort_before_the_first_action_leaves_nothing_active(
    status: BatchStatus, failure: Failure | None
) -> None:
    instance = Instance([step("a")])
    attempt = instance.attempt()
    attempt.engine.begin()

    attempt.abort(status, failure)

    assert instance.steps == [("a", status)]


# With a command that was sent and lost


@known
def test_abort_repeats_a_lost_command_without_its_start(
    status: BatchStatus, failure: Failure | None
) -> None:
    instance = Instance([step("a"), step("b")])
    attempt = lost(instance)

    command = attempt.abort(status, failure)

    assert command.start is None
    assert instance.steps == [("a", BatchStatus.COMPLETED)]
    assert [one.source for one in instance.decisions(attempt)] == ["a"]
    assert instance.ends == [status]


def test_the_next_launch_reuses_a_result_that_abort_has_saved() -> None:
    instance = Instance([step("a"), step("b")])
    lost(instance).abort(STOPPED)
    second = instance.attempt()

    second.finish({})

    assert second.trail == ["run b"]


def test_abort_as_unknown_leaves_the_lost_command_alone() -> None:
    instance = Instance([step("a"), step("b")])
    attempt = lost(instance)

    command = attempt.abort(UNKNOWN, BOOM)

    assert command.finish is None
    assert instance.steps == [("a", BatchStatus.STARTED)]
    assert instance.ends == [UNKNOWN]


@known
def test_abort_closes_the_step_whose_rows_were_lost_without_them(
    status: BatchStatus, failure: Failure | None
) -> None:
    instance = Instance([step("a"), step("b")])
    attempt = lost(instance, write=True)

    command = attempt.abort(status, failure)

    assert command.write is None
    assert instance.steps == [("a", status)]
    assert instance.decisions(attempt) == []
    assert tables(instance) == []
    assert [one.status for one in attempt.engine.steps] == [status]


def test_abort_replaces_an_end_that_was_lost() -> None:
    instance = Instance([step("a")])
    attempt = lost(instance)

    attempt.abort(STOPPED)

    assert instance.ends == [STOPPED]
    assert instance.steps == [("a", BatchStatus.COMPLETED)]


def test_abort_before_a_decider_keeps_the_lost_result() -> None:
    instance = Instance([step("a"), decision("d", {"GO": COMPLETE})])
    attempt = lost(instance)

    attempt.abort(STOPPED)
    second = instance.attempt()
    second.finish({"d": "GO"})

    assert second.trail == ["ask d"]


def test_abort_after_the_end_writes_nothing() -> None:
    attempt = Instance([step("a")]).attempt()
    attempt.finish({})

    assert attempt.engine.abort(STOPPED, None) is None


def test_abort_writes_once() -> None:
    attempt = Instance([step("a")]).attempt()
    attempt.until(RunStep, {})
    attempt.abort(STOPPED)

    assert attempt.engine.abort(STOPPED, None) is None


# A write that raised


def test_a_refused_write_closes_the_step_with_the_other_result() -> None:
    instance = Instance([step("a"), step("b")])
    attempt = lost(instance, write=True)

    end = attempt.finish({}, attempt.engine.unwritten(FAILED))

    assert end.status is BatchStatus.FAILED
    assert instance.steps == [("a", BatchStatus.FAILED)]
    assert tables(instance) == []
    assert [one.status for one in attempt.engine.steps] == [BatchStatus.FAILED]


def test_a_refused_write_may_lead_on_by_the_rule_for_failed() -> None:
    instance = Instance([step("a", then={"FAILED": "b", "*": "b"}), step("b")])
    attempt = lost(instance, write=True)

    end = attempt.finish({}, attempt.engine.unwritten(FAILED))

    assert end.status is BatchStatus.COMPLETED
    assert attempt.trail == ["run b"]


def test_a_refused_write_frees_the_numbers_of_all_transitions_beside_it() -> None:
    nodes = [step("a", allow_start_if_complete=True), step("b"), step("c"), step("d")]
    instance = Instance(nodes)
    instance.attempt().finish({"d": FAILED})
    attempt = instance.attempt()
    attempt.until(RunStep, {})
    result = evolve(completed(), write=insert)
    refused = command_of(attempt.engine.stepped(result))

    end = attempt.finish({}, attempt.engine.unwritten(FAILED))

    assert len(refused.decisions) == 2
    assert [one.sequence for one in instance.decisions(attempt)] == [1]
    assert [one.node for one in attempt.engine.steps] == ["a"]
    assert end.status is BatchStatus.FAILED


def test_a_refused_write_of_an_unknown_effect_ends_unknown() -> None:
    instance = Instance([step("a"), step("b")])
    attempt = lost(instance, write=True)
    unknown = evolve(FAILED, status=UNKNOWN, exit_code="UNKNOWN")

    end = attempt.finish({}, attempt.engine.unwritten(unknown))

    assert end.status is UNKNOWN
    assert instance.steps == [("a", UNKNOWN)]
    assert instance.decisions(attempt) == []
