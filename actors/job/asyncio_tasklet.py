"""User code that was written for asyncio, as a component of a job."""

from collections.abc import Awaitable, Callable
from functools import wraps
from typing import Any, TypeVar

from ...storage.model.errors import InvalidValue
from ..kernel.asyncio_calls import call_asyncio
from .boundary import is_async

T = TypeVar("T")


def asyncio_tasklet(
    function: Callable[..., Awaitable[T]],
) -> Callable[..., Awaitable[T]]:
    """Let a coroutine function that uses asyncio stand where a job takes async code.

    It serves as a tasklet, decider, processor or listener, and as a method of a reader
    or writer. All such code of one step shares one asyncio loop, which is closed before
    the result of the step is committed; what it has left running is cancelled then.

    A stop or a cancellation raises `asyncio.CancelledError` inside, once, as asyncio
    does it, and goes on as `trio.Cancelled` when that comes out. An
    `asyncio.CancelledError` that nobody asked for is a failure. ``ctx`` is used as
    anywhere else; ``await ctx.stop.wait()`` works too.

    Args:
        function: A coroutine function, or an object whose ``__call__`` is one.

    Raises:
        InvalidValue: It is something else.
    """
    if not is_async(function):
        kind = type(function).__name__
        reason = f"must be a coroutine function (async def), not {kind}"
        raise InvalidValue("what asyncio_tasklet is given", reason)

    @wraps(function, updated=())
    async def call(*arguments: Any) -> T:  # noqa: ANN401  # as its place demands
        result: T = await call_asyncio(function, *arguments)
        return result

    return call
