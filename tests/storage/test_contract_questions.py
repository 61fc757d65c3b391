"""The contract of ListExecutions and ShowExecution."""

from typing import Any

import pytest

from tests.storage.client import (
    FACTS,
    JOB,
    Client,
    folded,
    job_end,
    new_decision,
    next_step,
    step_end,
)
from triolet.storage.commands import (
    ExecutionDetail,
    ExecutionLine,
    ExecutionNotFound,
    LatestExecution,
    ListExecutions,
    ShowExecution,
)
from triolet.storage.model.errors import InvalidValue
from triolet.storage.model.execution import DecisionRef, TransitionKind
from triolet.storage.model.parameters import parameters_of
from triolet.storage.model.status import BatchStatus


@pytest.fixture
def three(client: Client) -> Client:
    """A store with executions 1 and 3 of one job, 2 of another; 1 has completed."""
    first = client.open(parameters_of({"n": 1}))
    client.open(parameters_of({"n": 2}), job="import")
    client.open(parameters_of({"n": 3}))
    client.advance(first, end=job_end())
    return client


@pytest.mark.parametrize(
    ("question", "ids", "more"),
    [
        (ListExecutions(), [3, 2, 1], False),
        (ListExecutions(limit=3), [3, 2, 1], False),
        (ListExecutions(limit=2), [3, 2], True),
        (ListExecutions(before=3), [2, 1], False),
        (ListExecutions(before=3, limit=1), [2], True),
        (ListExecutions(before=1), [], False),
        (ListExecutions(before=99), [3, 2, 1], False),
        (ListExecutions(job=JOB), [3, 1], False),
        (ListExecutions(job=JOB, limit=1), [3], True),
        (ListExecutions(job="nothing"), [], False),
        (ListExecutions(status=BatchStatus.STARTED), [3, 2], False),
        (ListExecutions(status=BatchStatus.COMPLETED, job="import"), [], False),
        (ListExecutions(status=BatchStatus.STARTED, limit=1), [3], True),
    ],
)
def test_executions_are_listed_newest_first(
    three: Client, question: ListExecutions, ids: list[int], more: bool
) -> None:
    page = three.ask(question)

    assert [line.execution.id for line in page.lines] == ids
    assert page.more is more


def test_a_line_holds_execution_and_instance(three: Client) -> None:
    page = three.ask(ListExecutions(limit=1))

    dump = three.dump()
    assert page.lines == (
        ExecutionLine(dump.executions[2], dump.instances[2].instance),
    )


def test_an_unknown_execution_is_not_shown(client: Client) -> None:
    assert client.refusal(ShowExecution(1)) == ExecutionNotFound(1)


def test_a_shown_execution_has_steps_and_decisions_in_order(client: Client) -> None:
    opened = client.open(first=next_step("load"))
    client.advance(
        opened,
        finish=step_end(1, decision=folded(2)),
        decisions=(new_decision(3), new_decision(1)),
        start=next_step("extract"),
    )
    client.open(parameters_of({"n": 2}), first=next_step("other"))

    shown = client.ask(ShowExecution(opened.execution_id))

    dump = client.dump()
    assert shown == ExecutionDetail(
        execution=dump.executions[0],
        instance=dump.instances[0].instance,
        owner=FACTS,
        steps=dump.steps[:2],
        decisions=shown.decisions,
        reused=(),
    )
    kinds = [(one.sequence, one.kind) for one in shown.decisions]
    assert kinds == [
        (1, TransitionKind.DECIDER),
        (2, TransitionKind.STEP_EXIT),
        (3, TransitionKind.DECIDER),
    ]


def test_a_shown_execution_has_the_steps_that_it_reused(client: Client) -> None:
    first = client.open(first=next_step("load"))
    client.advance(
        first, finish=step_end(1, decision=folded(1)), start=next_step("rates")
    )
    client.advance(first, finish=step_end(2, decision=folded(2)))
    client.fail(first)
    second = client.open()
    reuse = {
        "kind": TransitionKind.COMPLETED_STEP_REUSE,
        "outcome": "COMPLETED",
    }
    client.advance(
        second,
        decisions=(
            new_decision(
                2, source="load", step_id=1, reused=DecisionRef(1, 1), **reuse
            ),
            new_decision(
                1, source="rates", step_id=2, reused=DecisionRef(1, 2), **reuse
            ),
            new_decision(3, step_id=2),
        ),
    )

    shown = client.ask(ShowExecution(second.execution_id))

    assert [step.id for step in shown.reused] == [2, 1]
    assert shown.reused[1] == client.step(1)
    assert shown.steps == ()


@pytest.mark.parametrize("number", [-(10**30), -1, 0, 1 << 63, 10**30])
def test_an_execution_of_an_impossible_number_is_not_found(
    client: Client, number: int
) -> None:
    assert client.refusal(ShowExecution(number)) == ExecutionNotFound(number)


@pytest.mark.parametrize(
    "bounds",
    [
        {"limit": -1},
        {"limit": 10**30},
        {"limit": True},
        {"limit": "5"},
        {"before": -1},
        {"before": 1 << 63},
        {"before": 1.5},
    ],
)
def test_a_list_has_bounds_that_a_store_can_take(bounds: dict[str, Any]) -> None:
    with pytest.raises(InvalidValue, match="must be a whole number from"):
        ListExecutions(**bounds)


def test_the_widest_bounds_are_answered(three: Client) -> None:
    page = three.ask(ListExecutions(limit=(1 << 32) - 1, before=(1 << 63) - 1))
    assert len(page.lines) == 3


def test_the_latest_execution_of_an_instance_is_found_by_its_key(
    client: Client,
) -> None:
    first = client.open(parameters_of({"n": 1}))
    client.open(parameters_of({"n": 2}))
    client.advance(first, end=job_end(BatchStatus.FAILED))
    client.open(parameters_of({"n": 1}))

    key = parameters_of({"n": 1}).instance_key(JOB)
    found = client.ask(LatestExecution(JOB, key))

    dump = client.dump()
    assert found == ExecutionLine(dump.executions[2], dump.instances[0].instance)
    assert client.ask(LatestExecution("other", key)) is None
    assert client.ask(LatestExecution(JOB, bytes(32))) is None
