"""The composition root: `open_runtime` wires store, heartbeat and launches together.

It decides nothing. A runtime lives inside the caller's scope: it takes no signals, keeps
no global state, and leaves no task, thread or connection behind.
"""

import logging
from collections.abc import AsyncIterator, Sequence
from contextlib import ExitStack, asynccontextmanager
from functools import partial
from uuid import UUID

import trio

from ..storage.backend import Backend, Descriptor, Listener
from ..storage.commands import (
    STOP_CHANNEL,
    OwnerRegistered,
    RegisterOwner,
    ReleaseOwner,
)
from ..storage.commands.requesting import LAUNCH_CHANNEL
from ..storage.model.errors import InvalidValue, StoreError
from ..storage.stores import SQLITE, StoreOptions, listener_of, open_store, sqlite_path
from .job.events import Announcer, Event, EventKind
from .job.launch import LaunchSettings
from .job.loop_watch import LoopWatch
from .job.options import RuntimeOptions, check_type
from .kernel.heartbeat import Heartbeat
from .kernel.listening import hearing
from .kernel.liveness import this_process
from .kernel.pool import StoragePool
from .kernel.storage_actor import StorageActor
from .runtime import Runtime

log = logging.getLogger("triolet.runtime")


@asynccontextmanager
async def open_runtime(
    store: str | Backend, options: RuntimeOptions | None = None
) -> AsyncIterator[Runtime]:
    """Open a runtime on a store; leave it when all launches inside have ended.

    Args:
        store: A URL, ``sqlite:///triolet.db`` for one, or an open backend, which stays
            open.
        options: How the runtime works.

    Raises:
        InvalidValue: The URL is not one of a store, or an argument is of another type.
        StoreError: The store cannot be used; the class says why.

    Leaving the block waits for launches that tasks outside of it have begun, as a nursery
    does for its tasks; leaving it by an error cancels them (`RuntimeLeft`).

    Cancellation: Launches inside write their last word first; then the runtime closes.
    Launches outside are cancelled.
    """
    options = RuntimeOptions() if options is None else options
    check_type(options, RuntimeOptions, "the second argument of open_runtime")
    if isinstance(store, str):
        listener = listener_of(store, [STOP_CHANNEL, LAUNCH_CHANNEL])
        async with (
            _opened(store, options) as backends,
            _served(backends, options, listener) as it,
        ):
            yield it
    else:
        if not isinstance(getattr(store, "descriptor", None), Descriptor):
            kind = type(store).__name__
            reason = f"must be a URL like sqlite:///triolet.db, not {kind}"
            raise InvalidValue("the store", reason)
        async with _served([store], options) as it:
            yield it


@asynccontextmanager
async def _opened(url: str, options: RuntimeOptions) -> AsyncIterator[list[Backend]]:
    if url.startswith(SQLITE) and sqlite_path(url) == ":memory:":
        raise InvalidValue("the store URL", "keeps nothing: write memory: to mean that")
    open_it = partial(open_store, url, StoreOptions())
    with ExitStack() as stack:
        backends: list[Backend] = []
        wanted = 1
        while len(backends) < wanted:
            if options.inline:
                backend = open_it()
            else:
                backend = await trio.to_thread.run_sync(open_it)
            stack.callback(backend.close)
            backends.append(backend)
            if backend.descriptor.capacity > 1:
                wanted = options.connections + 1
        yield backends


@asynccontextmanager
async def _served(
    backends: Sequence[Backend],
    options: RuntimeOptions,
    listener: Listener | None = None,
) -> AsyncIterator[Runtime]:
    pool = _pool(backends, options)
    watch = LoopWatch(0 if options.inline else options.block_warning)
    failed: list[BaseException] = []
    async with trio.open_nursery() as nursery:
        pool.start(nursery)
        try:
            since = trio.current_time()
            owner = await _register(pool.control, options)
            owner_id = owner.owner_id
            settings = LaunchSettings(
                nursery=nursery,
                watch=watch,
                store=pool.control,
                stores=pool.workers,
                descriptor=backends[0].descriptor,
                connections=pool.capacity,
                owner_id=owner_id,
                new_id=lambda: options.random.getrandbits(63) or 1,
                sink=options.events,
                limiter=_limiter(options),
                store_error_text=options.store_error_text,
                patience=options.patience,
                is_running=lambda *_: False,
            )
            runtime = Runtime(nursery, pool, settings, options.stop_poll)
            heartbeat = Heartbeat(
                pool.control,
                owner,
                options.lease,
                since,
                runtime._launches.fence,
                runtime._launches.check_owner,
            )
            nursery.start_soon(heartbeat.run)
            try:
                with hearing(nursery, listener, runtime._heard):
                    async with _awaited(runtime):
                        yield runtime
            finally:
                watch.close()
                runtime._launches.stops.life.cancel()
                heartbeat.life.cancel()
                await _release(pool.control, owner_id)
        except trio.Cancelled:
            raise
        except BaseException as exc:
            # Raised again outside, where no nursery wraps it in a group.
            failed.append(exc)
        finally:
            pool.end()
    if failed:
        raise failed[0]


@asynccontextmanager
async def _awaited(runtime: Runtime) -> AsyncIterator[None]:
    """Let no launch outlive the block, wherever its task lives."""
    through = False
    try:
        yield
        through = True
    finally:
        await (runtime._leave() if through else runtime._abandon())


def _pool(backends: Sequence[Backend], options: RuntimeOptions) -> StoragePool:
    announcer = Announcer(options.events, job="")

    def retried(reason: str) -> None:
        announcer.tell(Event(kind=EventKind.STORE_RETRIED, message=reason))

    def storage_actor(backend: Backend) -> StorageActor:
        return StorageActor(
            backend,
            new_id=lambda: UUID(int=options.random.getrandbits(128)),
            adaptive=backend.descriptor.inline and not options.inline,
            apart=backend.descriptor.capacity > 1 and not options.inline,
            patience=options.patience,
            deadline=options.ask_deadline,
            on_retry=retried,
        )

    return StoragePool(backends, storage_actor)


def _limiter(options: RuntimeOptions) -> trio.CapacityLimiter | None:
    return None if options.inline else trio.CapacityLimiter(options.threads_max)


async def _register(store: StorageActor, options: RuntimeOptions) -> OwnerRegistered:
    lease = round(options.lease * 1_000_000)
    return await store.ask(RegisterOwner(this_process(), lease))


async def _release(store: StorageActor, owner_id: int) -> None:
    try:
        await store.ask(ReleaseOwner(owner_id))
    except StoreError as exc:
        log.warning("the lease could not be given back: %s", exc)
