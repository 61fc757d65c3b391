"""Actor groups: ends are messages, and leaving the group joins every child."""

from collections.abc import Awaitable, Callable

import outcome
import pytest
import trio
import trio.testing
from attrs import define

from triolet.actors.kernel.group import Exited, open_group
from triolet.actors.kernel.mailbox import Inbox, Mailbox


@define(eq=False)
class Doing:
    """An actor that does what it is told and reads nothing."""

    work: Callable[[], Awaitable[object]]

    async def run(self, inbox: Inbox[str]) -> object:
        return await self.work()


class Echo:
    """An actor that returns the first message it gets."""

    async def run(self, inbox: Inbox[str]) -> object:
        return await inbox.receive()


def same(exited: Exited) -> Exited:
    return exited


async def fail() -> object:
    raise ValueError("broken")


async def succeed() -> object:
    return 42


async def test_what_a_child_returns_is_told_to_the_parent() -> None:
    parent = Mailbox[Exited](4)
    async with open_group(parent, same) as group:
        group.start("one", Doing(succeed), Mailbox[str](1))
        assert await parent.inbox.receive() == Exited("one", outcome.Value(42))
        assert group.running == ()


async def test_a_child_reads_its_own_mailbox() -> None:
    parent, child = Mailbox[Exited](4), Mailbox[str](1)
    async with open_group(parent, same) as group:
        group.start("echo", Echo(), child)
        await child.tell("hello")
        assert await parent.inbox.receive() == Exited("echo", outcome.Value("hello"))


async def test_a_failing_child_leaves_its_siblings_alone() -> None:
    parent, child = Mailbox[Exited](4), Mailbox[str](1)
    async with open_group(parent, same) as group:
        group.start("steady", Echo(), child)
        group.start("broken", Doing(fail), Mailbox[str](1))
        exited = await parent.inbox.receive()
        assert exited.name == "broken"
        assert isinstance(exited.outcome, outcome.Error)
        assert str(exited.outcome.error) == "broken"
        assert group.running == ("steady",)
        await child.tell("done")
    assert (await parent.inbox.receive()).name == "steady"


async def test_one_child_can_be_cancelled_and_its_end_is_told() -> None:
    parent = Mailbox[Exited](4)
    async with open_group(parent, same) as group:
        group.start("sleeper", Doing(trio.sleep_forever), Mailbox[str](1))
        group.start("other", Doing(trio.sleep_forever), Mailbox[str](1))
        group.cancel("sleeper")
        exited = await parent.inbox.receive()
        assert exited.name == "sleeper"
        assert isinstance(exited.outcome, outcome.Error)
        assert "was cancelled" in str(exited.outcome.error)
        assert group.running == ("other",)
        group.cancel("sleeper")
        group.cancel()
    assert (await parent.inbox.receive()).name == "other"


async def test_a_cancelled_child_that_returns_a_result_has_it_told() -> None:
    async def last_word() -> object:
        try:
            await trio.sleep(60)
        except trio.Cancelled:
            return "saved"
        return None

    parent = Mailbox[Exited](4)
    async with open_group(parent, same) as group:
        group.start("child", Doing(last_word), Mailbox[str](1))
        await trio.testing.wait_all_tasks_blocked()
        group.cancel()
    assert parent.inbox.take(9) == [Exited("child", outcome.Value("saved"))]


async def test_leaving_the_group_waits_for_its_children(
    autojump_clock: trio.testing.MockClock,
) -> None:
    async def nap() -> None:
        await trio.sleep(60)

    parent = Mailbox[Exited](4)
    began = trio.current_time()
    async with open_group(parent, same) as group:
        group.start("napper", Doing(nap), Mailbox[str](1))
    assert trio.current_time() - began == 60
    assert [one.name for one in parent.inbox.take(9)] == ["napper"]


async def test_cancelling_the_scope_around_the_group_tells_nothing(
    autojump_clock: trio.testing.MockClock,
) -> None:
    parent = Mailbox[Exited](4)
    with trio.move_on_after(1) as scope:
        async with open_group(parent, same) as group:
            group.start("sleeper", Doing(trio.sleep_forever), Mailbox[str](1))
            await trio.sleep_forever()
    assert scope.cancelled_caught
    assert parent.inbox.take(9) == []


async def test_a_name_is_taken_while_its_child_runs_and_free_afterwards() -> None:
    parent = Mailbox[Exited](4)
    async with open_group(parent, same) as group:
        group.start("one", Doing(trio.sleep_forever), Mailbox[str](1))
        with pytest.raises(ValueError, match="'one' is running"):
            group.start("one", Doing(succeed), Mailbox[str](1))
        group.cancel("one")
        await parent.inbox.receive()
        group.start("one", Doing(succeed), Mailbox[str](1))
        assert await parent.inbox.receive() == Exited("one", outcome.Value(42))


async def test_telling_a_child_that_has_ended_is_refused() -> None:
    parent, child = Mailbox[Exited](4), Mailbox[str](1)
    async with open_group(parent, same) as group:
        group.start("one", Doing(succeed), child)
        await parent.inbox.receive()
        with pytest.raises(trio.BrokenResourceError):
            child.tell_nowait("too late")


async def test_an_ending_child_waits_while_its_parents_mailbox_is_full() -> None:
    parent = Mailbox[Exited](1)
    async with open_group(parent, same) as group:
        for name in ("one", "two", "three"):
            group.start(name, Doing(succeed), Mailbox[str](1))
        await trio.testing.wait_all_tasks_blocked()
        assert parent.depth == 1
        names = {(await parent.inbox.receive()).name for _ in range(3)}
        assert names == {"one", "two", "three"}
