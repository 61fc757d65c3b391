"""The boundary: whatever user code raises becomes a failure that may be stored."""

import asyncio
import functools
import sys
import threading
from typing import NoReturn

import pytest
import trio
import trio.testing

from triolet.actors import FailureCategory, OutcomeUnknown
from triolet.actors.job.boundary import (
    Boundary,
    ComponentFailed,
    Where,
    is_async,
)
from triolet.storage.model.execution import Failure

HERE = Where("load", "tasklet_failed")


@pytest.fixture
def boundary() -> Boundary:
    return Boundary(lambda: 77)


def raising(exc: BaseException) -> NoReturn:
    raise exc


async def failure_of(boundary: Boundary, exc: BaseException) -> Failure:
    """Give the failure that an exception of user code becomes."""
    with pytest.raises(ComponentFailed) as caught:
        await boundary.call(HERE, raising, exc)
    assert caught.value.cause is exc
    return caught.value.failure


async def raised(boundary: Boundary, exc: BaseException) -> BaseException:
    """Give what goes on up when user code raises; a leak would look like success."""
    try:
        await boundary.call(HERE, raising, exc)
    except BaseException as gone_on:
        return gone_on
    raise AssertionError("nothing was raised")


def cancelled() -> trio.Cancelled:
    """Make a cancellation that nobody asked for."""
    return trio.Cancelled._create(source="explicit")


async def test_an_exception_becomes_a_failure_with_all_that_is_known_of_it(
    boundary: Boundary,
) -> None:
    assert await failure_of(boundary, ValueError("no such day")) == Failure(
        category=FailureCategory.USER_COMPONENT,
        id=77,
        code="tasklet_failed",
        where="load",
        type="ValueError",
        message="no such day",
        place=f"test_boundary.py, line {raising.__code__.co_firstlineno + 1}",
    )


async def test_sys_exit_is_a_failure_that_says_so(boundary: Boundary) -> None:
    with pytest.raises(ComponentFailed) as caught:
        await boundary.call(HERE, sys.exit, 3)
    failure = caught.value.failure
    assert failure.type == "SystemExit"
    assert failure.message == ("user code called sys.exit(3); return or raise instead")


async def test_asyncio_code_is_told_what_it_lacks(boundary: Boundary) -> None:
    async def waits() -> None:
        await asyncio.sleep(0.01)

    with pytest.raises(ComponentFailed) as caught:
        await boundary.call(HERE, waits)
    assert caught.value.failure.message == (
        "no running event loop: if it uses asyncio, wrap it with asyncio_tasklet"
    )
    other = await failure_of(boundary, RuntimeError("no running event loop, alas"))
    assert other.message == "no running event loop, alas"


async def test_cancellation_and_keyboard_interrupt_go_on(boundary: Boundary) -> None:
    for exc in (cancelled(), KeyboardInterrupt()):
        assert await raised(boundary, exc) is exc


async def test_a_group_of_ordinary_errors_is_a_failure(boundary: Boundary) -> None:
    group = ExceptionGroup("two at once", [ValueError("a"), KeyError("b")])
    failure = await failure_of(boundary, group)
    assert failure.type == "ExceptionGroup"
    assert failure.message == "two at once: ValueError: a; KeyError: 'b'"


async def test_the_group_of_a_nursery_names_what_is_inside(boundary: Boundary) -> None:
    async def child(message: str) -> None:
        raising(ValueError(message))

    async def work(count: int) -> None:
        async with trio.open_nursery() as outer, trio.open_nursery() as nursery:
            outer.start_soon(trio.lowlevel.checkpoint)
            for _ in range(count):
                nursery.start_soon(child, "bad row")

    bad = (
        f"ValueError: bad row (at test_boundary.py, "
        f"line {raising.__code__.co_firstlineno + 1})"
    )
    for count, message in (
        (1, bad),
        (2, f"{bad}; {bad}"),
        (5, f"{bad}; {bad}; {bad}; and 2 more"),
    ):
        with pytest.raises(ComponentFailed) as caught:
            await boundary.call(HERE, work, count)
        assert caught.value.failure.type == "ExceptionGroup"
        assert caught.value.failure.message == message


async def test_a_cancellation_inside_a_group_is_taken_out(boundary: Boundary) -> None:
    hidden = cancelled()
    nested = BaseExceptionGroup("inner", [hidden])
    group = BaseExceptionGroup("outer", [ValueError("a"), nested])
    assert await raised(boundary, group) is hidden


async def test_an_error_beside_a_cancellation_in_a_group_is_logged(
    boundary: Boundary, caplog: pytest.LogCaptureFixture
) -> None:
    group = BaseExceptionGroup("both", [ValueError("not lost"), cancelled()])
    assert isinstance(await raised(boundary, group), trio.Cancelled)
    assert "not lost" in caplog.text


async def test_a_keyboard_interrupt_in_a_group_wins_over_a_cancellation(
    boundary: Boundary,
) -> None:
    group = BaseExceptionGroup("both", [cancelled(), KeyboardInterrupt()])
    assert isinstance(await raised(boundary, group), KeyboardInterrupt)


async def test_an_unknown_outcome_goes_on_also_out_of_a_group(
    boundary: Boundary,
) -> None:
    unknown = OutcomeUnknown("did the bank book it?")
    for exc in (unknown, ExceptionGroup("one task", [unknown])):
        assert await raised(boundary, exc) is unknown


async def test_secrets_and_control_characters_are_replaced() -> None:
    boundary = Boundary(lambda: 1, secrets=("hunter2",))
    failure = await failure_of(boundary, ValueError("login hunter2:\0\r\n\x1b[31m"))
    assert failure.message == "login ***:    [31m"


def test_lone_surrogates_are_replaced(boundary: Boundary) -> None:
    assert boundary.cleaned("a\ud800b") == "a b"


async def test_a_long_message_is_cut_between_two_characters(boundary: Boundary) -> None:
    failure = await failure_of(boundary, ValueError("é" * 1000 + "x"))
    assert failure.message == "é" * 512
    failure = await failure_of(boundary, ValueError("x" + "é" * 1000))
    assert failure.message == "x" + "é" * 511


async def test_a_secret_is_replaced_before_the_message_is_cut() -> None:
    boundary = Boundary(lambda: 1, secrets=("hunter2",))
    failure = await failure_of(boundary, ValueError("x" * 1020 + "hunter2"))
    assert failure.message == "x" * 1020 + "***"


async def test_an_exception_that_cannot_be_printed_is_a_failure_all_the_same(
    boundary: Boundary,
) -> None:
    class Unprintable(Exception):
        def __str__(self) -> str:
            raise RuntimeError("not even this")

    failure = await failure_of(boundary, Unprintable())
    assert failure.type == "Unprintable"
    assert failure.message == "its text could not be made (RuntimeError)"


async def test_messages_stay_out_of_the_store_when_told_so() -> None:
    boundary = Boundary(lambda: 1, store_error_text=False)
    failure = await failure_of(boundary, ValueError("patient 17"))
    assert (failure.type, failure.message) == ("ValueError", None)


async def test_the_traceback_goes_to_the_log(
    boundary: Boundary, caplog: pytest.LogCaptureFixture
) -> None:
    await failure_of(boundary, ValueError("no such day"))
    (record,) = caplog.records
    assert record.getMessage() == "load failed: no such day"
    assert record.exc_info is not None
    assert isinstance(record.exc_info[1], ValueError)


async def test_a_failure_keeps_the_category_of_the_place_where_it_happened(
    boundary: Boundary,
) -> None:
    where = Where("audit", "listener_failed", FailureCategory.SERIALIZATION)
    failure = boundary.failure(where, ValueError("x"))
    assert failure.category is FailureCategory.SERIALIZATION
    assert (failure.where, failure.code) == ("audit", "listener_failed")


class AsyncCallable:
    async def __call__(self, text: str) -> str:
        await trio.lowlevel.checkpoint()
        return text


async def echo(text: str) -> str:
    await trio.lowlevel.checkpoint()
    return text


@pytest.mark.parametrize(
    "function",
    [
        echo,
        functools.partial(echo),
        lambda text: echo(text),
        lambda text: text,
        AsyncCallable(),
        functools.partial(AsyncCallable()),
        str,
    ],
    ids=["async", "partial", "lambda", "plain", "object", "partial object", "class"],
)
async def test_any_kind_of_callable_may_be_called(
    boundary: Boundary, function: object
) -> None:
    assert callable(function)
    assert await boundary.call(HERE, function, "hello") == "hello"


def test_what_gives_a_coroutine_is_recognised() -> None:
    assert is_async(echo)
    assert is_async(AsyncCallable())
    assert not is_async(str)
    assert not is_async(lambda: echo("x"))


async def test_plain_functions_run_in_a_thread_of_the_limiter() -> None:
    limiter = trio.CapacityLimiter(1)
    boundary = Boundary(lambda: 1, limiter=limiter)
    busy, go_on = threading.Event(), threading.Event()

    def work() -> int:
        busy.set()
        go_on.wait(5)
        return threading.get_ident()

    threads = []

    async def call() -> None:
        threads.append(await boundary.call(HERE, work))

    with trio.fail_after(5):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(call)
            await trio.to_thread.run_sync(busy.wait)
            assert limiter.borrowed_tokens == 1
            go_on.set()
    assert threads != [threading.get_ident()]


async def test_without_a_limiter_plain_functions_run_on_the_event_loop(
    boundary: Boundary,
) -> None:
    assert await boundary.call(HERE, threading.get_ident) == threading.get_ident()


async def test_a_plain_function_that_raises_stop_iteration_fails(
    boundary: Boundary,
) -> None:
    for limiter in (None, trio.CapacityLimiter(1)):
        boundary = Boundary(lambda: 1, limiter=limiter)
        with pytest.raises(ComponentFailed):
            await boundary.call(HERE, raising, StopIteration(1))


async def test_a_secret_is_not_in_a_logged_traceback(
    caplog: pytest.LogCaptureFixture,
) -> None:
    boundary = Boundary(lambda: 1, secrets=("hunter2",))

    async def work() -> None:
        raise ValueError(f"bad {secret}") from KeyError(secret)

    (secret,) = boundary.secrets

    with pytest.raises(ComponentFailed):
        await boundary.call(HERE, work)
    assert "ValueError: bad ***" in caplog.text
    assert "in work" in caplog.text
    assert "hunter2" not in caplog.text
