"""Mailboxes: bounded queues with back-pressure, and slots for answers."""

import pytest
import trio
import trio.testing

from triolet.actors.kernel.mailbox import Mailbox, Slot


async def test_messages_arrive_in_the_order_in_which_they_were_told() -> None:
    mailbox = Mailbox[int](3)
    for number in (1, 2, 3):
        await mailbox.tell(number)
    assert [await mailbox.inbox.receive() for _ in range(3)] == [1, 2, 3]


def test_a_mailbox_without_room_for_one_message_is_refused() -> None:
    with pytest.raises(ValueError, match="at least 1"):
        Mailbox[int](0)


async def test_a_full_mailbox_makes_the_sender_wait(
    autojump_clock: trio.testing.MockClock,
) -> None:
    mailbox = Mailbox[int](1)
    mailbox.tell_nowait(1)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(mailbox.tell, 2)
        await trio.sleep(1)
        assert mailbox.depth == 1
        assert [await mailbox.inbox.receive() for _ in range(2)] == [1, 2]


async def test_telling_without_waiting_says_when_the_mailbox_is_full() -> None:
    mailbox = Mailbox[int](1)
    mailbox.tell_nowait(1)
    with pytest.raises(trio.WouldBlock):
        mailbox.tell_nowait(2)
    assert mailbox.depth == 1


async def test_a_cancelled_sender_has_put_nothing_in(
    autojump_clock: trio.testing.MockClock,
) -> None:
    mailbox = Mailbox[int](1)
    mailbox.tell_nowait(1)
    with trio.move_on_after(1) as scope:
        await mailbox.tell(2)
    assert scope.cancelled_caught
    assert mailbox.inbox.take(9) == [1]


async def test_a_closed_inbox_breaks_those_who_tell_later_and_those_who_wait() -> None:
    mailbox = Mailbox[int](1)
    mailbox.tell_nowait(1)
    broken = []

    async def tell() -> None:
        try:
            await mailbox.tell(2)
        except trio.BrokenResourceError:
            broken.append(True)

    async with trio.open_nursery() as nursery:
        nursery.start_soon(tell)
        await trio.testing.wait_all_tasks_blocked()
        mailbox.inbox.close()
    assert broken == [True]
    with pytest.raises(trio.BrokenResourceError):
        mailbox.tell_nowait(3)
    with pytest.raises(trio.BrokenResourceError):
        await mailbox.tell(3)


async def test_taking_gives_what_waits_up_to_the_limit_and_never_waits() -> None:
    mailbox = Mailbox[int](5)
    assert mailbox.inbox.take(2) == []
    for number in (1, 2, 3):
        mailbox.tell_nowait(number)
    assert mailbox.inbox.take(2) == [1, 2]
    assert mailbox.inbox.take(2) == [3]


async def test_taking_from_a_closed_inbox_gives_nothing() -> None:
    mailbox = Mailbox[int](1)
    mailbox.inbox.close()
    assert mailbox.inbox.take(1) == []


async def test_taking_lets_waiting_senders_move_up() -> None:
    mailbox = Mailbox[int](1)
    mailbox.tell_nowait(1)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(mailbox.tell, 2)
        await trio.testing.wait_all_tasks_blocked()
        assert mailbox.inbox.take(9) == [1, 2]


async def test_an_answer_reaches_an_asker_who_waits() -> None:
    slot = Slot[str]()
    heard = []

    async def wait() -> None:
        heard.append(await slot.wait())

    async with trio.open_nursery() as nursery:
        nursery.start_soon(wait)
        await trio.testing.wait_all_tasks_blocked()
        before = slot.is_answered
        slot.answer("yes")
        assert (before, slot.is_answered) == (False, True)
    assert heard == ["yes"]


async def test_an_answer_waits_for_an_asker_who_comes_late() -> None:
    slot = Slot[str]()
    slot.answer("yes")
    assert await slot.wait() == "yes"


async def test_an_error_is_raised_where_the_answer_is_awaited() -> None:
    slot = Slot[str]()
    slot.fail(ValueError("no"))
    with pytest.raises(ValueError, match="no"):
        await slot.wait()


async def test_cancellation_does_not_wake_an_asker_before_the_answer() -> None:
    slot = Slot[str]()
    log = []

    async def wait(scope: trio.CancelScope) -> None:
        with scope:
            log.append(await slot.wait())
            await trio.lowlevel.checkpoint()
            log.append("went on")

    scope = trio.CancelScope()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(wait, scope)
        await trio.testing.wait_all_tasks_blocked()
        scope.cancel()
        await trio.testing.wait_all_tasks_blocked()
        assert log == []
        slot.answer("yes")
    assert log == ["yes"]
    assert scope.cancelled_caught


async def test_a_question_cannot_be_answered_twice() -> None:
    slot = Slot[str]()
    slot.answer("yes")
    with pytest.raises(AssertionError, match="twice"):
        slot.answer("no")
