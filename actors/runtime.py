"""The composition root: `open_runtime` wires store, heartbeat and launches together.

It decides nothing. A runtime lives inside the caller's scope: it takes no signals, keeps
no global state, and leaves no task, thread or connection behind.
"""

import logging
from collections import Counter
from collections.abc import AsyncIterator, Collection, Iterator, Mapping, Sequence
from contextlib import ExitStack, asynccontextmanager, contextmanager
from functools import partial
from uuid import UUID

import trio
from attrs import evolve

from ..storage.backend import Backend, Descriptor, Listener
from ..storage.commands import STOP_CHANNEL, RegisterOwner, ReleaseOwner
from ..storage.model.errors import (
    InvalidParameter,
    InvalidValue,
    StoreError,
)
from ..storage.stores import SQLITE, StoreOptions, listener_of, open_store, sqlite_path
from .job.events import Announcer, Event, EventKind
from .job.execution import JobExecution, Stop
from .job.launch import (
    ComponentsInUse,
    LaunchRequest,
    LaunchSettings,
    ShuttingDown,
    open_execution,
    request_of,
)
from .job.operating import Operator
from .job.options import RuntimeOptions, check_type
from .job.report import LaunchReport
from .job.restarting import restart_of
from .kernel.heartbeat import Heartbeat
from .kernel.listening import hearing
from .kernel.liveness import this_process
from .kernel.mailbox import Mailbox
from .kernel.pool import StoragePool
from .kernel.stop import StopToken
from .kernel.stop_watch import StopWatch
from .kernel.storage_actor import StorageActor
from .plan.compile import CompiledJob, compile_job
from .plan.definition import Job

log = logging.getLogger("triolet.runtime")

STOPS_MAX = 8
"""A stop is said once; further ones while the first is taken in may be dropped."""


class Runtime(Operator):
    """Launches jobs on one store, and does what operators ask; see `open_runtime`."""

    def __init__(
        self,
        nursery: trio.Nursery,
        pool: StoragePool,
        settings: LaunchSettings,
        stop_poll: float,
    ) -> None:
        store, owner_id = pool.control, settings.owner_id
        super().__init__(store, owner_id, settings.new_id)
        self._nursery = nursery
        self._pool = pool
        self._settings = evolve(settings, is_running=self._is_running)
        self._stops = StopWatch(store, owner_id, stop_poll, self._untold, self.stop)
        nursery.start_soon(self._stops.run)
        self._running: dict[int, tuple[StopToken, Mailbox[Stop]]] = {}
        self._claims: set[int] = set()
        self._launching: Counter[tuple[str, bytes]] = Counter()

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
            InvalidValue: An argument is of the wrong type.
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
        given = _merged({} if parameters is None else parameters, named)
        request = request_of(compiled, given, anew=anew, run=continue_run, wait=wait)
        with self._claimed(compiled), self._under_way(request):
            settings = evolve(self._settings, store=self._pool.take())
            execution = await open_execution(settings, request)
            with self._listening(execution):
                return await execution.run()

    async def restart(
        self,
        execution_id: int,
        job: Job | CompiledJob,
        overrides: Mapping[str, object] | None = None,
        /,
        *,
        wait: bool = True,
        **named: object,
    ) -> LaunchReport:
        """Run a job again with the parameters of one of its executions.

        Args:
            execution_id: Of the execution.
            job: Its definition.
            overrides: Values for parameters that are not identifying, and for secret
                ones, which have to be given again.
            wait: As for `launch`.
            named: More of them.

        Returns:
            The report; its `reused` names the parameters that were not given again.

        Raises:
            ExecutionNotFound: It is not in this store.
            InvalidValue: It is one of another job.
            OtherInstance: The parameters lead to another instance.
            TrioletError: Whatever `launch` raises.
        """
        compiled = job if isinstance(job, CompiledJob) else compile_job(job)
        detail = await self.show(execution_id)
        again = restart_of(detail, compiled, _merged(overrides or {}, named))
        report = await self.launch(
            compiled, again.parameters, continue_run=again.run, wait=wait
        )
        return evolve(report, reused=again.reused)

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
    def _under_way(self, request: LaunchRequest) -> Iterator[None]:
        self._launching[request.instance] += 1
        try:
            yield
        finally:
            self._launching[request.instance] -= 1
            if not self._launching[request.instance]:
                del self._launching[request.instance]

    def _is_running(self, execution_id: int, request: LaunchRequest) -> bool:
        here = self._launching[request.instance] > 1
        return here or execution_id in self._running

    @contextmanager
    def _listening(self, execution: JobExecution) -> Iterator[None]:
        mailbox: Mailbox[Stop] = Mailbox(STOPS_MAX)
        scope = trio.CancelScope()
        self._running[execution.execution_id] = (execution.stop_token, mailbox)
        self._stops.job_began()
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

    def _untold(self) -> Collection[int]:
        """Give the executions that run here and have not been told to stop."""
        running = self._running.items()
        return [known for known, (token, _) in running if not token.is_set()]

    @property
    def running(self) -> tuple[int, ...]:
        """Executions that run here now."""
        return tuple(self._running)


async def _within(
    scope: trio.CancelScope, execution: JobExecution, mailbox: Mailbox[Stop]
) -> None:
    with scope:
        await execution.listen(mailbox.inbox)


def _merged(
    parameters: Mapping[str, object], named: Mapping[str, object]
) -> dict[str, object]:
    check_type(parameters, Mapping, "parameters, which names the launch parameters,")
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
        InvalidValue: The URL is not one of a store, or an argument is of another type.
        StoreError: The store cannot be used; the class says why.

    Cancellation: Launches inside write their last word first; then the runtime closes.
    """
    options = RuntimeOptions() if options is None else options
    check_type(options, RuntimeOptions, "the second argument of open_runtime")
    if isinstance(store, str):
        listener = listener_of(store, [STOP_CHANNEL])
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
    draw = options.random
    announcer = Announcer(options.events, job="")

    def retried(reason: str) -> None:
        announcer.tell(Event(kind=EventKind.STORE_RETRIED, message=reason))

    def storage_actor(backend: Backend) -> StorageActor:
        return StorageActor(
            backend,
            new_id=lambda: UUID(int=draw.getrandbits(128)),
            adaptive=backend.descriptor.inline and not options.inline,
            patience=options.patience,
            deadline=options.ask_deadline,
            on_retry=retried,
        )

    pool = StoragePool(backends, storage_actor)
    store = pool.control
    failed: list[BaseException] = []
    async with trio.open_nursery() as nursery:
        pool.start(nursery)
        try:
            owner_id = await _register(store, options)
            heartbeat = Heartbeat(store, owner_id, options.lease)
            nursery.start_soon(heartbeat.run)
            settings = LaunchSettings(
                store=store,
                descriptor=backends[0].descriptor,
                connections=pool.capacity,
                owner_id=owner_id,
                new_id=lambda: draw.getrandbits(63) or 1,
                sink=options.events,
                limiter=_limiter(options),
                store_error_text=options.store_error_text,
                patience=options.patience,
                is_running=lambda *_: False,
            )
            runtime = Runtime(nursery, pool, settings, options.stop_poll)
            try:
                with hearing(nursery, listener, {STOP_CHANNEL: runtime._stops.wake}):
                    yield runtime
            finally:
                runtime._stops.life.cancel()
                heartbeat.life.cancel()
                await _release(store, owner_id)
        except trio.Cancelled:
            raise
        except BaseException as exc:
            # Raised again outside, where no nursery wraps it in a group.
            failed.append(exc)
        finally:
            pool.end()
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
