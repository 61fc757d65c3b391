"""The storage actor at work: batches, refusals, transient faults, deadlines, threads."""

import socket
import threading
from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any
from uuid import UUID

import pytest
import trio
import trio.testing
from attrs import define, field, frozen

from tests.kernel.fakes import (
    Note,
    Refused,
    ScriptedBackend,
    ask_in_order,
    askers_of,
    make_actor,
    serving,
)
from triolet.actors.kernel import offload
from triolet.actors.kernel.storage_actor import (
    BATCH_MAX,
    MAILBOX_CAPACITY,
    StorageActor,
)
from triolet.storage.backend import Pause, Readable, WaitedTooLong, Waits
from triolet.storage.commands import Command
from triolet.storage.model.errors import (
    StoreLocked,
    StoreUnavailable,
    StoreUnusable,
)


def notes(*texts: str) -> list[Note]:
    return [Note(text) for text in texts]


async def test_a_command_is_answered_with_its_reply() -> None:
    actor = make_actor(ScriptedBackend())
    async with serving(actor):
        assert await actor.ask(Note("one")) == "re: one"


async def test_what_waits_while_a_commit_is_under_way_becomes_one_batch(
    autojump_clock: trio.testing.MockClock,
) -> None:
    backend = ScriptedBackend([Pause(1)])
    actor = make_actor(backend)
    async with serving(actor) as nursery:
        first, *rest = askers_of(actor, *notes("first", "b", "c", "d"))
        nursery.start_soon(first)
        await trio.sleep(0.5)
        await ask_in_order(nursery, rest)
    assert backend.batches == [["first"], ["b", "c", "d"]]
    assert [asker.answers for asker in rest] == [["re: b"], ["re: c"], ["re: d"]]


async def test_a_batch_holds_a_hundred_commands_at_most_and_keeps_their_order(
    autojump_clock: trio.testing.MockClock,
) -> None:
    backend = ScriptedBackend([Pause(1)])
    actor = make_actor(backend)
    texts = [str(number) for number in range(250)]
    async with serving(actor) as nursery:
        nursery.start_soon(actor.ask, Note("first"))
        await trio.sleep(0.5)
        await ask_in_order(nursery, askers_of(actor, *notes(*texts)))
    assert [len(batch) for batch in backend.batches] == [1, BATCH_MAX, BATCH_MAX, 50]
    assert backend.committed == ["first", *texts]


async def test_a_command_with_an_enlisted_write_stands_alone_between_its_neighbours(
    autojump_clock: trio.testing.MockClock,
) -> None:
    backend = ScriptedBackend([Pause(1)])
    actor = make_actor(backend)
    waiting = [
        Note("a"),
        Note("b"),
        Note("copy", alone=True),
        Note("again", alone=True),
        Note("c"),
        Note("d"),
    ]
    async with serving(actor) as nursery:
        nursery.start_soon(actor.ask, Note("first"))
        await trio.sleep(0.5)
        await ask_in_order(nursery, askers_of(actor, *waiting))
    assert backend.batches == [["first"], ["a", "b"], ["copy"], ["again"], ["c", "d"]]


async def test_every_batch_has_an_id_of_its_own() -> None:
    backend = ScriptedBackend()
    actor = make_actor(backend)
    async with serving(actor):
        for text in ("a", "b", "c"):
            await actor.ask(Note(text))
    assert len({batch_id for batch_id, _ in backend.sent}) == 3


async def test_a_full_mailbox_makes_askers_wait_and_loses_nobody(
    autojump_clock: trio.testing.MockClock,
) -> None:
    backend = ScriptedBackend([Pause(1)])
    actor = make_actor(backend)
    count = MAILBOX_CAPACITY + 50
    askers = askers_of(actor, *(Note(str(number)) for number in range(count)))
    async with serving(actor) as nursery:
        nursery.start_soon(actor.ask, Note("first"))
        await trio.sleep(0.1)
        for asker in askers:
            nursery.start_soon(asker)
        await trio.sleep(0.1)
        assert actor.depth == MAILBOX_CAPACITY
    assert [asker.answers for asker in askers] == [
        [f"re: {number}"] for number in range(count)
    ]


async def test_a_rejection_answers_only_the_one_who_asked(
    autojump_clock: trio.testing.MockClock,
) -> None:
    backend = ScriptedBackend([Pause(1)])
    actor = make_actor(backend)
    askers = askers_of(actor, Note("a"), Note("b", refused=True), Note("c"))
    async with serving(actor) as nursery:
        nursery.start_soon(actor.ask, Note("first"))
        await trio.sleep(0.5)
        await ask_in_order(nursery, askers)
    assert [asker.answers for asker in askers] == [["re: a"], [Refused("b")], ["re: c"]]
    assert backend.batches == [["first"], ["a", "b", "c"]]


async def test_asking_never_raises_cancelled_but_the_next_checkpoint_does(
    autojump_clock: trio.testing.MockClock,
) -> None:
    backend = ScriptedBackend([Pause(10)])
    actor = make_actor(backend)
    (asker,) = askers_of(actor, Note("one"))
    with trio.move_on_after(60):
        async with serving(actor) as nursery:
            nursery.start_soon(asker)
            await trio.sleep(1)
            nursery.cancel_scope.cancel()
    assert asker.answers == ["re: one"]
    assert asker.cancelled_after
    assert backend.committed == ["one"]


async def test_a_command_asked_in_a_cancelled_scope_is_carried_out_all_the_same() -> (
    None
):
    backend = ScriptedBackend()
    actor = make_actor(backend)
    async with serving(actor):
        with trio.CancelScope() as scope:
            scope.cancel()
            assert await actor.ask(Note("one")) == "re: one"
            assert not scope.cancelled_caught
    assert backend.committed == ["one"]


async def test_an_asker_who_is_cancelled_before_a_full_mailbox_has_room_is_served(
    autojump_clock: trio.testing.MockClock,
) -> None:
    actor = make_actor(ScriptedBackend([Pause(1)]))
    async with serving(actor) as nursery:
        nursery.start_soon(actor.ask, Note("first"))
        await trio.sleep(0.1)
        for number in range(MAILBOX_CAPACITY):
            nursery.start_soon(actor.ask, Note(str(number)))
        await trio.sleep(0.1)
        with trio.CancelScope() as scope:
            scope.cancel()
            assert await actor.ask(Note("late")) == "re: late"


async def test_a_transient_fault_is_retried_under_a_new_id(
    autojump_clock: trio.testing.MockClock,
) -> None:
    backend = ScriptedBackend([StoreUnavailable("down")] * 3)
    actor = make_actor(backend)
    async with serving(actor):
        assert await actor.ask(Note("one")) == "re: one"
    assert backend.batches == [["one"]] * 4
    assert len({batch_id for batch_id, _ in backend.sent}) == 4


async def test_every_retry_is_told_with_its_reason(
    autojump_clock: trio.testing.MockClock,
) -> None:
    backend = ScriptedBackend([StoreUnavailable("down"), StoreUnavailable("up soon")])
    told: list[str] = []
    actor = make_actor(backend, on_retry=told.append)
    async with serving(actor):
        await actor.ask(Note("one"))
    assert told == ["down", "up soon"]


@pytest.mark.parametrize("deadline", [0.2, 30])
async def test_retries_end_at_the_deadline_and_the_fault_is_raised(
    autojump_clock: trio.testing.MockClock, deadline: float
) -> None:
    backend = ScriptedBackend([StoreUnavailable("down")] * 100)
    actor = make_actor(backend, deadline=deadline)
    async with serving(actor):
        began = trio.current_time()
        with pytest.raises(StoreUnavailable, match="down"):
            await actor.ask(Note("one"))
        assert deadline <= trio.current_time() - began < deadline + 3
        backend.script.clear()
        assert await actor.ask(Note("two")) == "re: two"
    assert backend.committed == ["two"]


@pytest.mark.parametrize(
    "fault",
    [StoreLocked("locked"), StoreUnusable("read-only")],
    ids=lambda one: one.code,
)
async def test_a_fault_that_repetition_does_not_mend_is_raised_at_once(
    fault: StoreUnavailable | StoreUnusable,
) -> None:
    backend = ScriptedBackend([fault])
    actor = make_actor(backend)
    async with serving(actor):
        with pytest.raises(type(fault)):
            await actor.ask(Note("one"))
        assert backend.batches == [["one"]]
        assert await actor.ask(Note("two")) == "re: two"


async def test_a_fault_of_the_store_answers_everybody_in_the_batch(
    autojump_clock: trio.testing.MockClock,
) -> None:
    backend = ScriptedBackend([Pause(1), StoreUnusable("read-only")])
    actor = make_actor(backend)
    askers = askers_of(actor, *notes("a", "b"))
    async with serving(actor) as nursery:
        nursery.start_soon(actor.ask, Note("first"))
        await trio.sleep(0.5)
        await ask_in_order(nursery, askers)
    fault = StoreUnusable("read-only")
    assert [asker.answers for asker in askers] == [[fault], [fault]]


async def test_an_ask_that_expired_before_its_turn_is_withdrawn(
    autojump_clock: trio.testing.MockClock,
) -> None:
    backend = ScriptedBackend([Pause(20)])
    actor = make_actor(backend, deadline=15)
    early, late = askers_of(actor, *notes("early", "late"))
    async with serving(actor) as nursery:
        nursery.start_soon(actor.ask, Note("first"))
        await trio.sleep(1)
        nursery.start_soon(early)
        await trio.sleep(10)
        nursery.start_soon(late)
    (withdrawn,) = early.answers
    assert isinstance(withdrawn, StoreUnavailable)
    assert late.answers == ["re: late"]
    assert backend.committed == ["first", "late"]


async def test_a_batch_of_expired_asks_is_not_sent_at_all(
    autojump_clock: trio.testing.MockClock,
) -> None:
    backend = ScriptedBackend([Pause(20)])
    actor = make_actor(backend, deadline=15)
    (expired,) = askers_of(actor, Note("expired"))
    async with serving(actor) as nursery:
        nursery.start_soon(actor.ask, Note("first"))
        await trio.sleep(1)
        nursery.start_soon(expired)
    assert isinstance(expired.answers[0], StoreUnavailable)
    assert backend.batches == [["first"]]


async def test_a_commit_that_began_in_time_may_end_after_the_deadline(
    autojump_clock: trio.testing.MockClock,
) -> None:
    actor = make_actor(ScriptedBackend([Pause(20)]), deadline=15)
    async with serving(actor):
        assert await actor.ask(Note("one")) == "re: one"


@define
class SlowDisk:
    """A clock and a disk: a commit takes as long as the disk is said to need."""

    seconds: float = 0.0
    now: float = 0.0
    threads: list[int] = field(factory=list)

    def work(self) -> None:
        self.now += self.seconds
        self.threads.append(threading.get_ident())


async def commits(actor: StorageActor, disk: SlowDisk, count: int) -> set[int]:
    """Commit some commands and give the threads that did it."""
    disk.threads.clear()
    for number in range(count):
        await actor.ask(Note(str(number)))
    return set(disk.threads)


async def test_commits_move_to_a_thread_while_they_are_slow_and_come_back(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    disk = SlowDisk()
    timer = SimpleNamespace(perf_counter=lambda: disk.now)
    monkeypatch.setattr(offload, "time", timer)
    backend = ScriptedBackend([disk.work] * 400)
    actor = make_actor(backend, adaptive=True)
    loop = threading.get_ident()
    async with serving(actor):
        assert await commits(actor, disk, 20) == {loop}
        disk.seconds = 20 * offload.PATIENCE_SECS
        await commits(actor, disk, 20)
        assert loop not in await commits(actor, disk, 20)
        disk.seconds = offload.PATIENCE_SECS / 20
        await commits(actor, disk, 100)
        assert await commits(actor, disk, 20) == {loop}


async def test_enlisted_writes_run_apart_however_fast_they_are() -> None:
    disk = SlowDisk()
    backend = ScriptedBackend([disk.work] * 3)
    actor = make_actor(backend, adaptive=True, apart=True)
    async with serving(actor):
        await actor.ask(Note("one"))
        await actor.ask(Note("write", alone=True))
        await actor.ask(Note("two"))
    loop = threading.get_ident()
    assert [thread == loop for thread in disk.threads] == [True, False, True]


async def test_while_an_enlisted_write_runs_apart_others_are_served() -> None:
    going_on = threading.Event()
    slow = make_actor(ScriptedBackend([lambda: going_on.wait(10)]), apart=True)
    other = make_actor(ScriptedBackend())
    (asker,) = askers_of(slow, Note("write", alone=True))
    async with serving(slow) as nursery, serving(other):
        nursery.start_soon(asker)
        await trio.testing.wait_all_tasks_blocked(0.01)
        assert await other.ask(Note("the heartbeat")) == "re: the heartbeat"
        assert asker.answers == []
        going_on.set()
    assert asker.answers == ["re: write"]


@define(eq=False)
class SilentBackend(ScriptedBackend):
    """Its server never answers the first batch."""

    waited: int = 0

    def apply(
        self, batch_id: UUID, batch: Sequence[Command[Any]]
    ) -> Waits[Sequence[object]]:
        if not self.waited:
            ours, theirs = socket.socketpair()
            with ours, theirs:
                try:
                    yield Readable(ours.fileno())
                except WaitedTooLong:
                    self.waited += 1
                    raise StoreUnavailable("nobody answers") from None
        return (yield from super().apply(batch_id, batch))


@pytest.mark.parametrize("apart", [False, True])
async def test_a_store_that_is_silent_for_a_third_of_the_deadline_is_given_up(
    apart: bool,
) -> None:
    backend = SilentBackend()
    actor = make_actor(backend, apart=apart, deadline=0.6)
    began = trio.current_time()
    async with serving(actor):
        assert await actor.ask(Note("write", alone=True)) == "re: write"
    assert backend.waited == 1
    assert 0.2 <= trio.current_time() - began < 0.6


@frozen
class Placed(Note):
    """A command that makes rows which others make, too."""

    where: str = ""

    @property
    def place(self) -> tuple[str, bytes]:
        return self.where, b""


async def test_a_batch_is_in_the_order_of_places_and_replies_in_that_of_the_senders(
    autojump_clock: trio.testing.MockClock,
) -> None:
    """Two processes that make the same rows must not wait for each other."""
    backend = ScriptedBackend([Pause(1)])
    actor = make_actor(backend)
    waiting = [
        Placed("late", where="z"),
        Placed("early", where="a"),
        Note("plain"),
        Placed("as late", where="z"),
        Note("last"),
    ]
    async with serving(actor) as nursery:
        nursery.start_soon(actor.ask, Note("first"))
        await trio.sleep(0.5)
        askers = askers_of(actor, *waiting)
        await ask_in_order(nursery, askers)
    assert backend.batches[1:] == [["plain", "last", "early", "late", "as late"]]
    assert [one.answers for one in askers] == [[f"re: {one.text}"] for one in waiting]


async def test_pinned_commits_stay_on_the_event_loop_however_slow_they_are(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    disk = SlowDisk(seconds=1.0)
    timer = SimpleNamespace(perf_counter=lambda: disk.now)
    monkeypatch.setattr(offload, "time", timer)
    actor = make_actor(ScriptedBackend([disk.work] * 50), adaptive=False)
    async with serving(actor):
        assert await commits(actor, disk, 50) == {threading.get_ident()}
