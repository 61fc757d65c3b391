"""The contract of upgrades: a changed definition may continue where an edge leads."""

import pytest

from tests.storage.client import JOB, Client, definition, job_end, next_step, step_end
from triolet.storage.commands import (
    Definition,
    DefinitionDrift,
    IncompatibleDefinition,
    Opened,
)
from triolet.storage.commands.upgrading import (
    DefinitionUnknown,
    FindDefinition,
    RegisterUpgrade,
    UpgradeConflict,
    UpgradeRegistered,
)
from triolet.storage.model.errors import InvalidValue
from triolet.storage.model.status import BatchStatus

OLD, NEW, NEWEST = definition("f", "1"), definition("g", "2"), definition("h", "3")
RENAMED = (("load", "fetch"), ("report", "report"))


def edge(
    source: Definition = OLD,
    target: Definition = NEW,
    key: str = "rename",
    steps: tuple[tuple[str, str], ...] = RENAMED,
) -> RegisterUpgrade:
    return RegisterUpgrade(
        job=JOB, key=key, source=source.fingerprint, target=target, steps=steps
    )


@pytest.fixture
def failed(client: Client) -> Opened:
    """An attempt whose first step completed and whose second one failed."""
    opened = client.open(first=next_step("load"))
    client.advance(opened, finish=step_end(1), start=next_step("report"))
    client.advance(
        opened,
        finish=step_end(2, status=BatchStatus.FAILED),
        end=job_end(BatchStatus.FAILED),
    )
    return opened


def test_a_changed_definition_needs_an_edge(client: Client, failed: Opened) -> None:
    assert isinstance(
        client.refusal(client.opening(definition=NEW)), IncompatibleDefinition
    )

    assert client.ask(edge()) == UpgradeRegistered(unchanged=False)

    opened = client.open(definition=NEW)
    assert opened.restart_of == failed.execution_id


def test_history_goes_by_the_new_names(client: Client, failed: Opened) -> None:
    client.ask(edge())

    snapshot = client.open(definition=NEW).snapshot

    assert [(step.node, step.id, step.status) for step in snapshot.steps] == [
        ("fetch", 1, BatchStatus.COMPLETED),
        ("report", 2, BatchStatus.FAILED),
    ]
    assert snapshot.starts == (("fetch", 1, 1), ("report", 1, 1))


def test_history_is_carried_through_every_change_on_the_way(
    client: Client, failed: Opened
) -> None:
    client.ask(edge())
    client.ask(edge(NEW, NEWEST, "again", (("fetch", "get"), ("report", "load"))))
    second = client.open(definition=NEW)
    started = client.advance(second, start=next_step("report", inherit=2)).start
    assert started is not None
    client.advance(
        second,
        finish=step_end(3, status=BatchStatus.FAILED),
        end=job_end(BatchStatus.FAILED),
    )

    third = client.open(definition=NEWEST)

    assert [(step.node, step.id) for step in third.snapshot.steps] == [
        ("get", 1),
        ("load", 3),
    ]
    assert third.snapshot.starts == (("get", 1, 1), ("load", 1, 2))
    client.advance(third, end=job_end(BatchStatus.FAILED))
    fourth = client.open(definition=NEWEST)
    assert fourth.snapshot == third.snapshot


def test_edges_are_direct_and_one_way(client: Client, failed: Opened) -> None:
    client.ask(edge())
    client.ask(edge(NEW, NEWEST, "again"))

    refusal = client.refusal(client.opening(definition=NEWEST))

    assert isinstance(refusal, IncompatibleDefinition)
    client.advance(client.open(definition=NEW), end=job_end(BatchStatus.FAILED))
    assert isinstance(
        client.refusal(client.opening(definition=OLD)), IncompatibleDefinition
    )


def test_nodes_that_are_not_named_are_left_behind(
    client: Client, failed: Opened
) -> None:
    client.ask(edge(steps=(("report", "report"),)))

    snapshot = client.open(definition=NEW).snapshot

    assert [step.node for step in snapshot.steps] == ["report"]


def test_an_edge_is_never_changed(client: Client, failed: Opened) -> None:
    client.ask(edge())

    assert client.ask(edge()) == UpgradeRegistered(unchanged=True)
    assert client.refusal(edge(key="other")) == UpgradeConflict(JOB, "other")
    changed = edge(steps=(("load", "fetch"),))
    assert client.refusal(changed) == UpgradeConflict(JOB, "rename")
    client.ask(edge(NEW, NEWEST))
    assert client.refusal(edge(OLD, NEWEST)) == UpgradeConflict(JOB, "rename")


def test_an_edge_begins_at_a_definition_that_is_known(
    client: Client, failed: Opened
) -> None:
    assert client.refusal(edge(NEWEST, NEW)) == DefinitionUnknown(JOB)
    drifted = definition("x", "1")
    assert isinstance(client.refusal(edge(OLD, drifted)), DefinitionDrift)


def test_a_definition_is_found_by_its_label(client: Client, failed: Opened) -> None:
    assert client.ask(FindDefinition(JOB, "1")) == OLD
    assert client.refusal(FindDefinition(JOB, "7")) == DefinitionUnknown(JOB, "7")


@pytest.mark.parametrize(
    "steps", [(), (("a", "x"), ("b", "x")), (("a", "x"), ("a", "y"))]
)
def test_a_mapping_is_one_to_one_and_not_empty(
    steps: tuple[tuple[str, str], ...],
) -> None:
    with pytest.raises(InvalidValue):
        edge(steps=steps)


def test_an_edge_leads_to_a_changed_definition() -> None:
    with pytest.raises(InvalidValue):
        edge(OLD, OLD)
