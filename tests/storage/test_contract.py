"""The contract of every backend: batches, settlement, owners and leases."""

from collections.abc import Callable
from itertools import count
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

from tests.storage.backends import KINDS, NOON, dump_of, open_backend
from tests.storage.client import (
    DAY,
    FACTS,
    LEASE,
    Client,
    definition,
    job_end,
    new_decision,
    next_step,
    step_end,
)
from triolet.storage.backend import Backend, Committed, NotCommitted, drive, run
from triolet.storage.commands import (
    Advance,
    Advanced,
    ExecutionNotFound,
    ListExecutions,
    Opened,
    OpenExecution,
    OwnerRegistered,
    OwnerReleased,
    OwnerUnknown,
    RegisterOwner,
    ReleaseOwner,
    RenewLease,
    ShowExecution,
    StepStarted,
)
from triolet.storage.dump import Dump, StoredOwner
from triolet.storage.envelope import (
    CHECKPOINT_FORMAT,
    CONTEXT_FORMAT,
    STATE_SCHEMA,
    seal,
)
from triolet.storage.model.errors import InvalidValue, TrioletError
from triolet.storage.model.names import NameKind, check_name
from triolet.storage.model.parameters import parameters_of
from triolet.storage.model.status import BatchStatus, IllegalTransition

UNKNOWN_BATCH = UUID(int=1 << 64)


def test_a_new_store_is_empty(client: Client) -> None:
    assert client.dump() == Dump()


def test_an_empty_batch_has_no_replies(client: Client) -> None:
    assert client.apply() == []


def test_replies_come_in_the_order_of_the_commands(client: Client) -> None:
    replies = client.apply(
        RegisterOwner(FACTS, LEASE), RegisterOwner(FACTS, 5), ReleaseOwner(2)
    )

    assert replies == [
        OwnerRegistered(1, NOON + LEASE),
        OwnerRegistered(2, NOON + 5),
        OwnerReleased(),
    ]


def test_commands_of_a_batch_see_each_other(client: Client) -> None:
    opening = OpenExecution(
        job="settlement",
        parameters=DAY,
        definition=definition(),
        owner_id=1,
        failure_id=9,
        first=next_step("load"),
    )
    finish = Advance(execution_id=1, owner_id=1, finish=step_end(1), end=job_end())

    _, opened, advanced, shown = client.apply(
        RegisterOwner(FACTS, LEASE), opening, finish, ListExecutions()
    )

    assert isinstance(opened, Opened)
    assert opened.first == StepStarted(1, NOON)
    assert advanced == Advanced(NOON)
    assert shown == client.ask(ListExecutions())


def test_a_rejection_leaves_its_neighbours_alone(client: Client) -> None:
    replies = client.apply(
        RegisterOwner(FACTS, LEASE),
        RenewLease(7, LEASE),
        ShowExecution(3),
        RegisterOwner(FACTS, LEASE),
    )

    assert replies == [
        OwnerRegistered(1, NOON + LEASE),
        OwnerUnknown(7),
        ExecutionNotFound(3),
        OwnerRegistered(2, NOON + LEASE),
    ]
    assert [owner.id for owner in client.dump().owners] == [1, 2]


def test_a_command_refused_in_its_last_part_changes_nothing(client: Client) -> None:
    opened = client.open(first=next_step("load"))
    refused = client.advancing(
        opened,
        finish=step_end(1),
        decisions=(new_decision(),),
        start=next_step("report"),
        end=job_end(BatchStatus.STARTED),
    )

    outcome, owner = client.apply(refused, RegisterOwner(FACTS, LEASE))

    assert outcome == IllegalTransition(BatchStatus.STARTED, BatchStatus.STARTED)
    assert owner == OwnerRegistered(2, NOON + LEASE)
    dump = client.dump()
    assert [step.status for step in dump.steps] == [BatchStatus.STARTED]
    assert dump.decisions == ()


def test_a_command_with_unstorable_values_leaves_its_neighbours_alone(
    client: Client,
) -> None:
    client.owner()
    half = "x" * 60_000
    too_much = parameters_of({f"p{number}": half for number in range(20)})

    refused, registered = client.apply(
        client.opening(too_much), RegisterOwner(FACTS, LEASE)
    )

    assert isinstance(refused, InvalidValue)
    assert registered == OwnerRegistered(2, NOON + LEASE)
    assert client.dump().definitions == ()
    assert client.dump().instances == ()


@pytest.mark.parametrize(
    "door",
    [
        lambda text: check_name(text, NameKind.NODE),
        lambda text: check_name(text, NameKind.EXIT_CODE),
        lambda text: parameters_of({"day": text}),
        lambda text: parameters_of({text: 1}),
        lambda text: seal(CONTEXT_FORMAT, STATE_SCHEMA, {"a": text}, "the state"),
        lambda text: seal(CHECKPOINT_FORMAT, STATE_SCHEMA, {text: 1}, "the state"),
    ],
)
def test_no_door_lets_u0000_in(door: Callable[[str], object]) -> None:
    door("a-b")

    with pytest.raises(TrioletError):
        door("a\0b")


def test_ids_count_what_was_inserted_and_not_what_was_refused(client: Client) -> None:
    client.owner()
    first = client.open()
    client.refusal(client.opening())
    client.start(first, "load")
    client.refusal(client.advancing(first, start=next_step("load")))

    second = client.open(parameters_of({"day": "2026-12-01"}), job="import")
    step_id = client.start(second, "load")

    assert (second.instance_id, second.execution_id, step_id) == (2, 2, 2)
    assert [one.id for one in client.dump().definitions] == [1, 2]


@pytest.mark.parametrize("kind", KINDS)
def test_one_batch_has_one_instant(kind: str, tmp_path: Path) -> None:
    ticks = count(NOON)
    backend = open_backend(kind, lambda: next(ticks), tmp_path)
    commands = [RegisterOwner(FACTS, 0) for _ in range(3)]

    drive(backend.apply(UUID(int=1), commands))

    assert len({one.registered_at for one in dump_of(backend).owners}) == 1
    backend.close()


def test_a_batch_of_questions_changes_nothing(client: Client) -> None:
    client.open(first=next_step())
    before = client.dump()

    page, missing = client.apply(ListExecutions(), ShowExecution(8))

    assert missing == ExecutionNotFound(8)
    assert page == client.ask(ListExecutions())
    assert client.dump() == before


def test_a_backend_describes_itself(backend: Backend) -> None:
    kind = backend.descriptor.kind
    assert kind in ("memory", "sqlite", "postgres")
    assert backend.descriptor.capacity == (64 if kind == "postgres" else 1)
    assert backend.descriptor.inline


def test_a_refused_command_is_raised_to_a_synchronous_caller(backend: Backend) -> None:
    with pytest.raises(ExecutionNotFound) as caught:
        run(backend, UUID(int=1), ShowExecution(4))

    assert caught.value == ExecutionNotFound(4)


def test_a_committed_batch_is_settled_with_its_replies(client: Client) -> None:
    batch = (RegisterOwner(FACTS, LEASE), RenewLease(9, LEASE))
    replies = client.apply(*batch)

    settlement = drive(client.backend.settle(client.batch_id, batch))

    assert settlement == Committed(tuple(replies))


def test_a_batch_that_never_arrived_is_settled_as_not_committed(
    client: Client,
) -> None:
    client.owner()
    batch = (RegisterOwner(FACTS, LEASE),)

    settlement = drive(client.backend.settle(UNKNOWN_BATCH, batch))

    assert settlement == NotCommitted()
    assert len(client.dump().owners) == 1


def test_a_settled_store_works_on(client: Client) -> None:
    client.owner()
    drive(client.backend.settle(client.batch_id, (RegisterOwner(FACTS, LEASE),)))

    assert client.owner() == 2


def test_a_lease_ends_that_much_later(client: Client) -> None:
    registered = client.ask(RegisterOwner(FACTS, LEASE))

    assert registered == OwnerRegistered(1, NOON + LEASE)
    assert client.dump().owners == (
        StoredOwner(id=1, facts=FACTS, registered_at=NOON, lease_until=NOON + LEASE),
    )


def test_an_expired_lease_that_nobody_took_is_renewed(client: Client) -> None:
    owner_id = client.owner()
    client.clock.now += 2 * LEASE

    renewed = client.ask(RenewLease(owner_id, LEASE))

    assert renewed == OwnerRegistered(owner_id, NOON + 3 * LEASE)


def test_a_renewal_follows_a_clock_that_stepped_back(client: Client) -> None:
    owner_id = client.owner()
    client.clock.now -= 2 * LEASE

    renewed = client.ask(RenewLease(owner_id, LEASE))

    assert renewed == OwnerRegistered(owner_id, NOON - LEASE)


def test_a_released_lease_has_ended_at_once(client: Client) -> None:
    owner_id = client.owner()
    opened = client.open()
    client.ask(ReleaseOwner(owner_id))
    client.owner()

    assert client.open().took_over == opened.execution_id


def test_an_unknown_owner_has_no_lease(client: Client) -> None:
    assert client.refusal(RenewLease(1, LEASE)) == OwnerUnknown(1)
    assert client.refusal(ReleaseOwner(1)) == OwnerUnknown(1)


@pytest.mark.parametrize("lease", [-1, 3_600_000_001, 1 << 63, 10**30, 1.5, True])
def test_a_lease_has_bounds_that_a_store_can_take(lease: Any) -> None:
    for make in (lambda: RegisterOwner(FACTS, lease), lambda: RenewLease(1, lease)):
        with pytest.raises(InvalidValue, match="the lease in microseconds must be"):
            make()
