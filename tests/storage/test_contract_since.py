"""The contract of the time that is kept over recovery: since when things are under way."""

from typing import Any

import pytest

from tests.storage.backends import NOON
from tests.storage.client import JOB, Client, definition, step_end
from tests.storage.test_contract_operating import recover, stop
from triolet.storage.commands import Opened
from triolet.storage.commands.upgrading import RegisterUpgrade
from triolet.storage.model.status import BatchStatus

SECOND = 1_000_000
FAILED = BatchStatus.FAILED


def at(seconds: int) -> int:
    return NOON + seconds * SECOND


def again(client: Client, **changes: Any) -> Opened:
    """Open 5 seconds later, when the newest owner has died."""
    client.clock.now += 5 * SECOND
    dead = len(client.dump().owners)
    return client.open(dead_owner=dead, owner_id=client.owner(), **changes)


@pytest.fixture
def first(client: Client) -> Opened:
    """An attempt that began its first step after 10 seconds."""
    first = client.open()
    client.clock.now += 10 * SECOND
    client.start(first, "load")
    return first


def test_nothing_is_under_way_before_a_first_attempt(client: Client) -> None:
    snapshot = client.open().snapshot

    assert snapshot.since is None
    assert snapshot.steps_since == ()


def test_what_a_dead_owner_left_is_under_way_since_it_began(
    client: Client, first: Opened
) -> None:
    snapshot = again(client).snapshot

    assert snapshot.since == at(0)
    assert snapshot.steps_since == (("load", 1, at(10)),)


def test_of_several_deaths_in_a_row_the_first_attempt_counts(
    client: Client, first: Opened
) -> None:
    second = again(client)
    client.start(second, "load", inherit=1)
    third = again(client)
    client.start(third, "load", inherit=2)
    client.start(third, "other")
    snapshot = again(client).snapshot

    assert snapshot.since == at(0)
    assert snapshot.steps_since == (("load", 1, at(10)), ("other", 1, at(20)))


def test_a_step_that_another_attempt_did_not_reach_is_still_under_way(
    client: Client, first: Opened
) -> None:
    again(client)

    assert again(client).snapshot.steps_since == (("load", 1, at(10)),)


@pytest.mark.parametrize("status", [FAILED, BatchStatus.STOPPED, BatchStatus.COMPLETED])
def test_a_step_that_ended_by_itself_is_not_under_way(
    client: Client, first: Opened, status: BatchStatus
) -> None:
    client.advance(first, finish=step_end(1, status=status))
    second = again(client)

    assert second.snapshot.since == at(0)
    assert second.snapshot.steps_since == ()

    client.start(second, "load")
    assert again(client).snapshot.steps_since == (("load", 1, at(15)),)


def test_a_step_that_ended_between_two_deaths_began_after_that(
    client: Client, first: Opened
) -> None:
    second = again(client)
    client.start(second, "load")
    client.advance(second, finish=step_end(2, status=FAILED))
    third = again(client)
    client.start(third, "load")

    assert again(client).snapshot.steps_since == (("load", 1, at(20)),)


def test_an_attempt_that_ended_by_itself_begins_all_anew(
    client: Client, first: Opened
) -> None:
    client.fail(again(client))

    snapshot = client.open().snapshot

    assert snapshot.since is None
    assert snapshot.steps_since == ()
    assert again(client).snapshot.since == at(15)


def test_a_stopped_attempt_whose_owner_died_has_ended(
    client: Client, first: Opened
) -> None:
    client.ask(stop())

    assert again(client).snapshot.since is None


def test_what_an_operator_closed_for_a_dead_owner_is_under_way(
    client: Client, first: Opened
) -> None:
    client.ask(recover(client, dead_owner=1))

    snapshot = client.open().snapshot

    assert snapshot.since == at(0)
    assert snapshot.steps_since == (("load", 1, at(10)),)


def test_steps_are_under_way_by_the_names_of_an_upgraded_definition(
    client: Client, first: Opened
) -> None:
    target = definition("g", "2")
    source = definition().fingerprint
    steps = (("load", "fetch"),)
    client.ask(
        RegisterUpgrade(job=JOB, key="k", source=source, target=target, steps=steps)
    )

    second = again(client, definition=target)

    assert second.snapshot.since == at(0)
    assert second.snapshot.steps_since == (("fetch", 1, at(10)),)
    client.start(second, "fetch", inherit=1)
    third = again(client, definition=target)
    assert third.snapshot.steps_since == (("fetch", 1, at(10)),)
