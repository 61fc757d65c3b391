"""The storage actor in trouble: it dies, or the answer to a commit is lost.

Whatever happens, every command that it accepted is answered exactly once.
"""

import threading
from types import SimpleNamespace

import pytest
import trio
import trio.testing

from tests.kernel.fakes import (
    Asker,
    Crash,
    Lose,
    Note,
    ScriptedBackend,
    ask_in_order,
    askers_of,
    make_actor,
    serving,
)
from triolet.actors.kernel import offload
from triolet.actors.kernel.storage_actor import MAILBOX_CAPACITY, StorageActor
from triolet.storage.backend import Pause
from triolet.storage.model.errors import (
    CommitOutcomeUnknown,
    StoreGone,
    StoreUnavailable,
)


async def test_an_idle_actor_ends_with_its_life() -> None:
    actor = make_actor(ScriptedBackend())
    with trio.fail_after(5):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(actor.run)
            await trio.testing.wait_all_tasks_blocked()
            actor.life.cancel()


async def test_asking_an_actor_that_has_ended_is_refused() -> None:
    actor = make_actor(ScriptedBackend())
    async with serving(actor):
        await actor.ask(Note("one"))
    with pytest.raises(StoreGone):
        await actor.ask(Note("late"))


async def test_an_actor_whose_life_ended_before_it_ran_answers_those_who_asked() -> (
    None
):
    backend = ScriptedBackend()
    actor = make_actor(backend)
    (asker,) = askers_of(actor, Note("one"))
    actor.life.cancel()
    async with trio.open_nursery() as nursery:
        await ask_in_order(nursery, [asker])
        nursery.start_soon(actor.run)
    assert len(asker.answers) == 1


async def test_what_was_accepted_before_life_ends_is_carried_out(
    autojump_clock: trio.testing.MockClock,
) -> None:
    backend = ScriptedBackend([Pause(1)])
    actor = make_actor(backend)
    askers = askers_of(actor, *(Note(str(number)) for number in range(250)))
    async with serving(actor) as nursery:
        nursery.start_soon(actor.ask, Note("first"))
        await trio.sleep(0.5)
        await ask_in_order(nursery, askers)
        actor.life.cancel()
    assert all(asker.answers == [f"re: {asker.note.text}"] for asker in askers)
    assert len(backend.committed) == 251


async def test_a_commit_that_waits_for_a_lock_is_finished_when_life_ends(
    autojump_clock: trio.testing.MockClock,
) -> None:
    backend = ScriptedBackend([Pause(5)])
    actor = make_actor(backend)
    (asker,) = askers_of(actor, Note("one"))
    async with serving(actor) as nursery:
        nursery.start_soon(asker)
        await trio.sleep(1)
        actor.life.cancel()
    assert asker.answers == ["re: one"]


async def test_a_commit_between_two_retries_is_finished_when_life_ends(
    autojump_clock: trio.testing.MockClock,
) -> None:
    backend = ScriptedBackend([StoreUnavailable("down")] * 3)
    actor = make_actor(backend)
    (asker,) = askers_of(actor, Note("one"))
    async with serving(actor) as nursery:
        nursery.start_soon(asker)
        await trio.sleep(0.02)
        assert asker.answers == []
        actor.life.cancel()
    assert asker.answers == ["re: one"]


async def test_a_commit_in_its_thread_is_finished_when_life_ends(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    now = [0.0]
    in_thread, go_on = threading.Event(), threading.Event()

    def slow() -> None:
        now[0] += 100 * offload.PATIENCE_SECS

    def slower() -> None:
        in_thread.set()
        go_on.wait(5)

    timer = SimpleNamespace(perf_counter=lambda: now[0])
    monkeypatch.setattr(offload, "time", timer)
    backend = ScriptedBackend([slow, slower])
    actor = make_actor(backend, adaptive=True)
    (asker,) = askers_of(actor, Note("two"))
    with trio.fail_after(5):
        async with serving(actor) as nursery:
            await actor.ask(Note("one"))
            nursery.start_soon(asker)
            await trio.to_thread.run_sync(in_thread.wait)
            actor.life.cancel()
            await trio.testing.wait_all_tasks_blocked()
            assert asker.answers == []
            go_on.set()
    assert asker.answers == ["re: two"]


async def serve(actor: StorageActor, askers: list[Asker]) -> None:
    """Let askers ask while a first commit is under way, and join everybody."""
    async with trio.open_nursery() as outer:
        outer.start_soon(actor.run)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(actor.ask, Note("first"))
            await trio.sleep(0.5)
            for asker in askers:
                nursery.start_soon(asker)


async def test_a_crash_answers_everybody_with_store_gone_and_goes_on(
    autojump_clock: trio.testing.MockClock,
) -> None:
    backend = ScriptedBackend([Pause(1), Crash()])
    actor = make_actor(backend)
    askers = askers_of(
        actor,
        Note("copy", alone=True),
        Note("behind", alone=True),
        *(Note(str(number)) for number in range(200)),
    )
    with pytest.raises(BaseExceptionGroup) as caught:
        await serve(actor, askers)
    assert caught.value.subgroup(Crash) is not None
    assert backend.committed == ["first"]
    assert all(asker.answers == [StoreGone()] for asker in askers)
    with pytest.raises(StoreGone):
        await actor.ask(Note("late"))


async def test_a_crash_does_not_take_back_what_was_answered_before(
    autojump_clock: trio.testing.MockClock,
) -> None:
    backend = ScriptedBackend([Pause(1), None, Crash()])
    actor = make_actor(backend)
    askers = askers_of(actor, Note("copy", alone=True), Note("copy", alone=True))
    with pytest.raises(BaseExceptionGroup):
        await serve(actor, askers)
    answers = [answer for asker in askers for answer in asker.answers]
    assert sorted(answers, key=str) == ["re: copy", StoreGone()]


async def test_a_crash_answers_also_those_for_whom_the_mailbox_has_no_room(
    autojump_clock: trio.testing.MockClock,
) -> None:
    actor = make_actor(ScriptedBackend([Pause(1), Crash()]))
    count = 2 * MAILBOX_CAPACITY + 7
    askers = askers_of(actor, *(Note(str(number)) for number in range(count)))
    with pytest.raises(BaseExceptionGroup):
        await serve(actor, askers)
    assert all(asker.answers == [StoreGone()] for asker in askers)


async def test_an_unexpected_exception_of_the_backend_is_a_crash(
    autojump_clock: trio.testing.MockClock,
) -> None:
    actor = make_actor(ScriptedBackend([Pause(1), KeyError("bug")]))
    askers = askers_of(actor, Note("a"), Note("b"))
    with pytest.raises(ExceptionGroup) as caught:
        await serve(actor, askers)
    assert caught.value.subgroup(KeyError) is not None
    assert [asker.answers for asker in askers] == [[StoreGone()], [StoreGone()]]


async def test_the_actor_outlives_the_cancellation_of_the_scope_around_it(
    autojump_clock: trio.testing.MockClock,
) -> None:
    backend = ScriptedBackend()
    actor = make_actor(backend)
    said = []

    async def job() -> None:
        try:
            await trio.sleep_forever()
        finally:
            said.append(await actor.ask(Note("last word")))

    with trio.move_on_after(1) as scope:
        async with serving(actor) as nursery:
            nursery.start_soon(job)
    assert scope.cancelled_caught
    assert said == ["re: last word"]
    assert backend.committed == ["last word"]


async def test_a_scope_that_was_cancelled_before_the_actor_started_ends_cleanly() -> (
    None
):
    actor = make_actor(ScriptedBackend())
    with trio.fail_after(5), trio.CancelScope() as scope:
        scope.cancel()
        async with serving(actor):
            assert await actor.ask(Note("one")) == "re: one"
    with pytest.raises(StoreGone):
        await actor.ask(Note("late"))


async def test_a_lost_answer_of_a_commit_that_took_effect_is_recalled() -> None:
    backend = ScriptedBackend([Lose(committed=True)])
    actor = make_actor(backend)
    async with serving(actor):
        assert await actor.ask(Note("one")) == "re: one"
    assert backend.committed == ["one"]
    assert backend.settled == [batch_id for batch_id, _ in backend.sent]


async def test_a_batch_that_did_not_take_effect_is_sent_again_under_a_new_id(
    autojump_clock: trio.testing.MockClock,
) -> None:
    backend = ScriptedBackend([Lose(committed=False), Lose(committed=False)])
    actor = make_actor(backend)
    async with serving(actor):
        assert await actor.ask(Note("one")) == "re: one"
    assert backend.committed == ["one"]
    assert len({batch_id for batch_id, _ in backend.sent}) == 3
    assert backend.settled == [batch_id for batch_id, _ in backend.sent[:2]]


async def test_settling_is_repeated_until_the_store_answers(
    autojump_clock: trio.testing.MockClock,
) -> None:
    down = StoreUnavailable("down")
    backend = ScriptedBackend([Lose(committed=True)], settling=[down, down, Pause(3)])
    actor = make_actor(backend)
    async with serving(actor):
        assert await actor.ask(Note("one")) == "re: one"
    assert len(backend.settled) == 3
    assert backend.committed == ["one"]


async def test_an_outcome_that_cannot_be_settled_by_the_deadline_stays_unknown(
    autojump_clock: trio.testing.MockClock,
) -> None:
    down = StoreUnavailable("down")
    backend = ScriptedBackend([Lose(committed=True)], settling=[down] * 1000)
    actor = make_actor(backend, deadline=30)
    async with serving(actor):
        began = trio.current_time()
        with pytest.raises(CommitOutcomeUnknown):
            await actor.ask(Note("one"))
        assert 30 <= trio.current_time() - began < 32
        backend.settling.clear()
        assert await actor.ask(Note("two")) == "re: two"


async def test_settling_goes_on_although_life_ends(
    autojump_clock: trio.testing.MockClock,
) -> None:
    down = StoreUnavailable("down")
    backend = ScriptedBackend([Lose(committed=True)], settling=[down] * 5)
    actor = make_actor(backend)
    (asker,) = askers_of(actor, Note("one"))
    async with serving(actor) as nursery:
        nursery.start_soon(asker)
        await trio.sleep(0.1)
        assert asker.answers == []
        actor.life.cancel()
    assert asker.answers == ["re: one"]
