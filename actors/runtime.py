"""The composition root: `open_runtime` wires store, heartbeat and launches together.

It decides nothing. A runtime lives inside the caller's scope: it takes no signals, keeps
no global state, and leaves no task, thread or connection behind.
"""

import logging
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from functools import partial
from random import Random, SystemRandom
from uuid import UUID

import trio
from attrs import field, frozen

from ..storage.backend import Backend
from ..storage.commands import (
    ExecutionDetail,
    ExecutionPage,
    ListExecutions,
    RegisterOwner,
    ReleaseOwner,
    ShowExecution,
)
from ..storage.model.errors import (
    InvalidParameter,
    InvalidValue,
    StoreError,
    TrioletError,
    error,
)
from ..storage.model.status import BatchStatus
from ..storage.stores import SQLITE, StoreOptions, open_store, sqlite_path
from .job.events import EventSink
from .job.execution import JobExecution, Stop
from .job.launch import LaunchSettings, open_execution, request_of
from .job.report import LaunchReport
from .kernel.heartbeat import Heartbeat
from .kernel.liveness import this_process
from .kernel.mailbox import Mailbox
from .kernel.offload import PATIENCE_SECS
from .kernel.stop import StopToken
from .kernel.storage_actor import DEADLINE_SECS, StorageActor
from .plan.compile import CompiledJob, compile_job
from .plan.definition import Job

log = logging.getLogger("triolet.runtime")

LEASE_SECS = 30.0
LEASE_SECS_MIN = 1.0
LEASE_SECS_MAX = 3600.0
THREADS_MAX = 40
STOPS_MAX = 8
"""A stop is said once; further ones while the first is taken in may be dropped."""


@error
class ShuttingDown(TrioletError):
    """The runtime takes no more work; nothing was written."""

    code = "shutting_down"

    def __str__(self) -> str:
        """Say in one sentence what is wrong, where, and how to mend it."""
        return "the runtime is being stopped and takes no more launches"


def _seeded() -> Random:
    """Make a fast source of ids, seeded by the system."""
    return Random(SystemRandom().getrandbits(256))


@error
class ComponentsInUse(TrioletError):
    """A running launch uses the same reader or writer objects; nothing was written."""

    code = "components_in_use"
    job: str

    def __str__(self) -> str:
        """Say in one sentence what is wrong, where, and how to mend it."""
        return (
            f"a reader or writer of job {self.job!r} is in use by another launch: build "
            "the job anew for each launch that runs at the same time"
        )


@frozen(kw_only=True)
class RuntimeOptions:
    """How a runtime works.

    Args:
        events: Called with every event; what it raises is only logged.
        lease: Seconds after which another process may take over what a dead one left,
            1 to 3600.
        threads_max: Synchronous user functions that may run at the same time.
        store_error_text: False keeps the messages of user exceptions out of the store.
        inline: True runs storage and synchronous user functions on the event loop,
            without any thread, as deterministic tests need.
        patience: Seconds for which a commit, or the reading of a local file, may keep
            the event loop on average; what takes longer moves to a thread.
        ask_deadline: Seconds within which the store must carry out a command.
        random: The source of batch ids and failure ids.
    """

    events: EventSink | None = None
    lease: float = LEASE_SECS
    threads_max: int = THREADS_MAX
    store_error_text: bool = True
    inline: bool = False
    patience: float = PATIENCE_SECS
    ask_deadline: float = DEADLINE_SECS
    random: Random = field(factory=_seeded)

    def __attrs_post_init__(self) -> None:
        if not LEASE_SECS_MIN <= self.lease <= LEASE_SECS_MAX:
            raise InvalidValue("the lease", "must be 1 to 3600 seconds")
        if self.threads_max < 1:
            raise InvalidValue("threads_max", "must be at least 1")


class Runtime:
    """Launches jobs on one store; made by `open_runtime`."""

    def __init__(
        self, nursery: trio.Nursery, store: StorageActor, settings: LaunchSettings
    ) -> None:
        self._nursery = nursery
        self._store = store
        self._settings = settings
        self._running: dict[int, tuple[StopToken, Mailbox[Stop]]] = {}
        self._claims: set[int] = set()

    async def launch(
        self,
        job: Job | CompiledJob,
        parameters: Mapping[str, object] | None = None,
        /,
        *,
        anew: bool = False,
        continue_run: int | None = None,
        wait: bool = True,
        **named: object,
    ) -> LaunchReport:
        """Run a job to its end, continuing an earlier attempt if there was one.

        Args:
            job: The definition; compile it once with `compile_job` when it is
                launched often.
            parameters: Launch parameters; also the way to give those that are called
                ``anew``, ``continue_run`` or ``wait``.
            anew: Make a new instance by the next run number instead of continuing.
            continue_run: Continue the run of that number, which was launched anew.
            wait: Whether to wait for the lease of an earlier owner that may be dead.
            named: More launch parameters.

        Returns:
            The report, also of a job that failed or was stopped.

        Raises:
            DefinitionError: The definition has mistakes; all are listed.
            InvalidParameter: A parameter is unknown, missing, given twice or of the
                wrong type.
            InstanceComplete: The job has completed with these parameters.
            RunUnknown: There is no run of that number with these parameters.
            AlreadyRunning: Somebody who lives works on this instance.
            IncompatibleDefinition: The definition has changed since the attempt that
                would be continued.
            OutcomeUnresolved: An earlier attempt ended UNKNOWN.
            ShuttingDown: `stop` was called.
            ComponentsInUse: Another launch of this runtime that has not ended uses the
                same reader or writer objects.
            StoreError: The store failed; the class says what became of the job.

        Cancellation: The running step is cancelled, the execution is recorded as
            STOPPED, and `trio.Cancelled` goes on; the next launch continues.
        """
        if self._settings.closing.is_set():
            raise ShuttingDown
        compiled = job if isinstance(job, CompiledJob) else compile_job(job)
        given = _merged(parameters or {}, named)
        request = request_of(compiled, given, anew=anew, run=continue_run, wait=wait)
        with self._claimed(compiled):
            execution = await open_execution(self._settings, request)
            with self._listening(execution):
                return await execution.run()

    @contextmanager
    def _claimed(self, job: CompiledJob) -> Iterator[None]:
        """Keep the job's readers and writers from a second launch at the same time."""
        claimed = {id(component) for component in job.components}
        if not self._claims.isdisjoint(claimed):
            raise ComponentsInUse(job.plan.job)
        self._claims |= claimed
        try:
            yield
        finally:
            self._claims -= claimed

    @contextmanager
    def _listening(self, execution: JobExecution) -> Iterator[None]:
        mailbox: Mailbox[Stop] = Mailbox(STOPS_MAX)
        scope = trio.CancelScope()
        self._running[execution.execution_id] = (execution.stop_token, mailbox)
        self._nursery.start_soon(_within, scope, execution, mailbox)
        if self._settings.closing.is_set():
            self.stop(execution.execution_id)
        try:
            yield
        finally:
            del self._running[execution.execution_id]
            scope.cancel()

    def stop(self, execution_id: int | None = None) -> None:
        """Ask running jobs of this runtime to stop; their launches will report STOPPED.

        Args:
            execution_id: Only this one; one that does not run here is left alone.
                None: all, and no more launches are taken.
        """
        if execution_id is None:
            self._settings.closing.set()
        for known, (token, mailbox) in self._running.items():
            if execution_id in (None, known):
                # No code of the job's begins any more, even before its actor reads this.
                token.set()
                try:
                    mailbox.tell_nowait(Stop())
                except trio.WouldBlock:
                    log.debug("execution %d has been told to stop already", known)

    @property
    def running(self) -> tuple[int, ...]:
        """Executions that run here now."""
        return tuple(self._running)

    async def list(
        self,
        *,
        job: str | None = None,
        status: BatchStatus | None = None,
        limit: int = 50,
        before: int | None = None,
    ) -> ExecutionPage:
        """List executions of the store, newest first; see `ListExecutions`."""
        return await self._store.ask(ListExecutions(job, status, limit, before))

    async def show(self, execution_id: int) -> ExecutionDetail:
        """Give everything that the store knows of one execution.

        Raises:
            ExecutionNotFound: It is not in this store.
        """
        return await self._store.ask(ShowExecution(execution_id))


async def _within(
    scope: trio.CancelScope, execution: JobExecution, mailbox: Mailbox[Stop]
) -> None:
    with scope:
        await execution.listen(mailbox.inbox)


def _merged(
    parameters: Mapping[str, object], named: Mapping[str, object]
) -> dict[str, object]:
    twice = parameters.keys() & named.keys()
    if twice:
        raise InvalidParameter(min(twice), "is given twice")
    return {**parameters, **named}


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
        InvalidValue: The URL is not one of a store.
        StoreError: The store cannot be used; the class says why.

    Cancellation: Launches inside write their last word first; then the runtime closes.
    """
    options = options or RuntimeOptions()
    if isinstance(store, str):
        async with _opened(store, options) as backend, _served(backend, options) as it:
            yield it
    else:
        async with _served(store, options) as it:
            yield it


@asynccontextmanager
async def _opened(url: str, options: RuntimeOptions) -> AsyncIterator[Backend]:
    if url.startswith(SQLITE) and sqlite_path(url) == ":memory:":
        raise InvalidValue("the store URL", "keeps nothing: write memory: to mean that")
    open_it = partial(open_store, url, StoreOptions())
    if options.inline:
        backend = open_it()
    else:
        backend = await trio.to_thread.run_sync(open_it)
    try:
        yield backend
    finally:
        backend.close()


@asynccontextmanager
async def _served(backend: Backend, options: RuntimeOptions) -> AsyncIterator[Runtime]:
    draw = options.random
    store = StorageActor(
        backend,
        new_id=lambda: UUID(int=draw.getrandbits(128)),
        adaptive=backend.descriptor.inline and not options.inline,
        patience=options.patience,
        deadline=options.ask_deadline,
    )
    failed: list[BaseException] = []
    async with trio.open_nursery() as nursery:
        nursery.start_soon(store.run)
        try:
            owner_id = await _register(store, options)
            heartbeat = Heartbeat(store, owner_id, options.lease)
            nursery.start_soon(heartbeat.run)
            settings = LaunchSettings(
                store=store,
                owner_id=owner_id,
                new_id=lambda: draw.getrandbits(63) or 1,
                sink=options.events,
                limiter=_limiter(options),
                store_error_text=options.store_error_text,
                patience=options.patience,
            )
            try:
                yield Runtime(nursery, store, settings)
            finally:
                heartbeat.life.cancel()
                await _release(store, owner_id)
        except trio.Cancelled:
            raise
        except BaseException as exc:
            # Raised again outside, where no nursery wraps it in a group.
            failed.append(exc)
        finally:
            store.life.cancel()
    if failed:
        raise failed[0]


def _limiter(options: RuntimeOptions) -> trio.CapacityLimiter | None:
    return None if options.inline else trio.CapacityLimiter(options.threads_max)


async def _register(store: StorageActor, options: RuntimeOptions) -> int:
    lease = round(options.lease * 1_000_000)
    registered = await store.ask(RegisterOwner(this_process(), lease))
    return registered.owner_id


async def _release(store: StorageActor, owner_id: int) -> None:
    try:
        await store.ask(ReleaseOwner(owner_id))
    except StoreError as exc:
        log.warning("the lease could not be given back: %s", exc)
