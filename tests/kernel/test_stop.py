"""The stop token, as loop, threads and waiters see it."""

import threading

import trio
import trio.testing

from triolet.actors.kernel.stop import StopToken


def test_a_token_is_not_set_until_somebody_sets_it_and_stays_set() -> None:
    token = StopToken()
    assert not token.is_set()
    token.set()
    token.set()
    assert token.is_set()


async def test_setting_the_token_wakes_everybody_who_waits() -> None:
    token = StopToken()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(token.wait)
        nursery.start_soon(token.wait)
        await trio.testing.wait_all_tasks_blocked()
        token.set()


async def test_waiting_for_a_token_that_is_set_ends_at_once() -> None:
    token = StopToken()
    token.set()
    with trio.fail_after(1):
        await token.wait()


async def test_a_thread_can_read_the_token() -> None:
    token = StopToken()
    ready = threading.Event()

    def work() -> bool:
        while not token.is_set():
            ready.set()
        return True

    async def stop() -> None:
        await trio.to_thread.run_sync(ready.wait)
        token.set()

    with trio.fail_after(5):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(stop)
            assert await trio.to_thread.run_sync(work)


async def test_waiting_is_cancellable(autojump_clock: trio.testing.MockClock) -> None:
    token = StopToken()
    with trio.move_on_after(1) as scope:
        await token.wait()
    assert scope.cancelled_caught


async def test_a_thread_whose_task_is_cancelled_finds_the_token_set() -> None:
    token = StopToken()
    ready = threading.Event()

    def work() -> None:
        while not token.is_set():
            ready.set()

    with trio.fail_after(5):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(trio.to_thread.run_sync, work)
            await trio.to_thread.run_sync(ready.wait)
            nursery.cancel_scope.cancel()
    assert token.is_set()


async def test_a_thread_of_somebody_elses_can_read_the_token_too() -> None:
    token = StopToken()
    seen: list[bool] = []
    thread = threading.Thread(target=lambda: seen.append(token.is_set()))
    thread.start()
    await trio.to_thread.run_sync(thread.join)
    assert seen == [False]
