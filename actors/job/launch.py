"""Launching: everything that is checked before a job's first code runs.

In order: the runtime takes work; the definition compiles; the parameters fit; the store
lets a new attempt begin, after a dead owner's attempt was taken over. Whatever refuses
does so before anything is written.
"""

import logging
from collections.abc import Callable, Mapping
from functools import cached_property
from types import MappingProxyType

import trio
from attrs import evolve, field, frozen

from ...storage.backend import Descriptor
from ...storage.commands import (
    AlreadyRunning,
    Definition,
    DefinitionDrift,
    IncompatibleDefinition,
    Opened,
    OpenExecution,
)
from ...storage.model.bounds import check_whole
from ...storage.model.errors import InvalidValue, StoreError, TrioletError, error
from ...storage.model.execution import COUNT_MAX
from ...storage.model.lineage import without_lineage
from ...storage.model.parameters import ParameterSet
from ..kernel.liveness import is_alive
from ..kernel.stop import StopToken
from ..kernel.storage_actor import StorageActor
from ..plan.arguments import resolve
from ..plan.changes import describe_changes
from ..plan.compile import CompiledJob
from ..plan.job_traversal import JobTraversal, entry_step
from ..plan.plan import Plan
from .boundary import Boundary
from .context import JobContext
from .events import Announcer, Event, EventKind, EventSink
from .execution import JobExecution
from .factories import materialised
from .loop_watch import LoopWatch
from .masking import spellings
from .nested import OpenChild, no_child
from .requirements import check_store, requirements_of
from .step import Environment

log = logging.getLogger("triolet.job")

MICROS = 1_000_000
SETTLING_SECS = 0.01
"""Beyond the end of a lease, so that it has run out when we ask again."""


@error
class ShuttingDown(TrioletError):
    """The runtime takes no more work; nothing was written."""

    code = "shutting_down"

    def __str__(self) -> str:
        """Say in one sentence what is wrong, where, and how to mend it."""
        return "the runtime is being stopped and takes no more launches"


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


@error
class LeaseExpired(StoreError):
    """The lease ran out while the job ran, because the store could not be reached."""

    code = "lease_expired"
    execution_id: int

    def __str__(self) -> str:
        """Say in one sentence what is wrong, where, and how to mend it."""
        return (
            f"execution {self.execution_id} was cancelled, because its lease ran out "
            "and could not be renewed, so that somebody else may have taken it over: "
            "launch the job again when the store can be reached"
        )


@error
class RuntimeLeft(StoreError):
    """The runtime's block was left by an error or a cancellation while the job ran."""

    code = "runtime_left"
    execution_id: int

    def __str__(self) -> str:
        """Say in one sentence what is wrong, where, and how to mend it."""
        return (
            f"execution {self.execution_id} was cancelled, because the block of its "
            "open_runtime was left while it ran: open the nursery of launches inside of "
            "that block, and launch the job again"
        )


@frozen(kw_only=True)
class LaunchSettings:
    """What all launches of one runtime share."""

    nursery: trio.Nursery
    watch: LoopWatch
    store: StorageActor
    stores: tuple[StorageActor, ...]
    """All that work side by side, for what an execution does side by side."""
    descriptor: Descriptor
    connections: int
    """To the store, the one for control included."""
    owner_id: int
    new_id: Callable[[], int]
    """Draws nonzero numbers for failures."""
    sink: EventSink | None
    limiter: trio.CapacityLimiter | None
    store_error_text: bool
    patience: float
    is_running: Callable[[int, "Launch"], bool]
    """Tells whether this runtime works on that execution, or another launch of the
    same instance is under way here."""
    open_child: OpenChild = no_child
    """Begins an attempt at the child of a step."""
    closing: StopToken = field(factory=StopToken)
    """Set when no more launches are taken."""


@frozen(kw_only=True)
class Launch:
    """One launch: a compiled job and what the caller gave for it."""

    job: CompiledJob
    parameters: ParameterSet
    anew: bool = False
    run: int | None = None
    """The numbered run that is continued."""
    wait: bool = True
    """Whether to wait for the lease of an owner of whom nothing is known."""
    request_id: int | None = None
    """The launch request that it is for."""
    above: StopToken | None = None
    """Of the step that runs it, if it is a child."""

    @cached_property
    def instance(self) -> tuple[str, bytes]:
        """Which instance is meant; one that is made anew is known only later."""
        job = self.job.plan.job
        return job, self.parameters.instance_key(job)


def launch_of(
    job: CompiledJob,
    given: Mapping[str, object],
    *,
    anew: bool,
    run: int | None = None,
    wait: bool = True,
    request_id: int | None = None,
) -> Launch:
    """Check the parameters of a launch.

    Raises:
        InvalidParameter: A parameter is unknown, missing or of the wrong type.
        InvalidName: A parameter's name breaks the rules.
        InvalidValue: *run* is no number of a run, or one is to be made anew as well.
    """
    parameters = resolve(job.parameters, given)
    if run is not None:
        check_whole("continue_run", run, 1, COUNT_MAX)
        if anew:
            raise InvalidValue("anew and continue_run", "exclude each other")
        parameters = parameters.with_run(run)
    return Launch(
        job=job,
        parameters=parameters,
        anew=anew,
        run=run,
        wait=wait,
        request_id=request_id,
    )


def opening_of(launch: Launch, owner_id: int, failure_id: int) -> OpenExecution:
    """Make the command that begins a new attempt."""
    job, plan = launch.job, launch.job.plan
    before = any(listener.before is not None for listener in job.listeners)
    first = entry_step(plan, heard=bool(job.listeners))
    return OpenExecution(
        job=plan.job,
        parameters=launch.parameters,
        definition=Definition(
            revision=job.revision,
            format=plan.format,
            fingerprint=plan.fingerprint,
            manifest=plan.manifest,
        ),
        owner_id=owner_id,
        failure_id=failure_id,
        anew=launch.anew,
        existing=launch.run is not None,
        restartable=job.restartable,
        # Job listeners come before the first step, but after the row of an only one.
        first=None if before and not plan.one_step else first,
        request_id=launch.request_id,
    )


def with_changes(
    exc: IncompatibleDefinition | DefinitionDrift, plan: Plan
) -> IncompatibleDefinition | DefinitionDrift:
    """Tell in a refusal what has changed in the definition."""
    changes = describe_changes(exc.stored, plan.manifest)
    if isinstance(exc, DefinitionDrift):
        return DefinitionDrift(exc.job, exc.revision, exc.stored, changes)
    return IncompatibleDefinition(exc.job, exc.execution_id, exc.stored, changes)


async def open_execution(settings: LaunchSettings, launch: Launch) -> JobExecution:
    """Begin a new attempt and make the actor that will run it.

    Raises:
        UndeclaredCapability: The store cannot do what the job needs.
        InsufficientPoolCapacity: The runtime has too few connections for the job.
        AssemblyError: A factory raised, or made what the plan does not declare.
        Rejection: The store refuses: the instance is complete, abandoned, UNKNOWN,
            owned by somebody who lives, or its definition has changed.
        StoreError: The store failed.
        trio.Cancelled: While waiting for a lease; nothing was written.
    """
    job = launch.job
    plan = job.plan
    check_store(settings.descriptor, settings.connections, requirements_of(job))
    if job.factories:
        calling = Boundary(new_failure_id=settings.new_id, limiter=settings.limiter)
        job = await materialised(job, calling)
        check_store(settings.descriptor, settings.connections, requirements_of(job))
        launch = evolve(launch, job=job)
    command = opening_of(launch, settings.owner_id, settings.new_id())
    try:
        opened = await _open(settings, launch, command)
    except (IncompatibleDefinition, DefinitionDrift) as exc:
        raise with_changes(exc, plan) from None
    if opened.took_over is not None:
        log.info("execution %d was taken over", opened.took_over)
    return _execution(settings, launch, opened)


async def _open(
    settings: LaunchSettings, launch: Launch, command: OpenExecution
) -> Opened:
    try:
        return await settings.store.ask(command)
    except AlreadyRunning as exc:
        running = exc
    if running.owner_id == settings.owner_id:
        if settings.is_running(running.execution_id, launch):
            raise running
        # The store failed while it was to be closed; nobody works on it any more.
        command = evolve(command, dead_owner=running.owner_id)
        return await settings.store.ask(command)
    match is_alive(running.owner):
        case True:
            raise running
        case False:
            command = evolve(command, dead_owner=running.owner_id)
        case None:
            if not launch.wait:
                raise running
            await _wait_for_lease(settings, launch, running)
            if settings.closing.is_set():
                raise running
    return await settings.store.ask(command)


async def _wait_for_lease(
    settings: LaunchSettings, launch: Launch, running: AlreadyRunning
) -> None:
    seconds = running.lease_left / MICROS + SETTLING_SECS
    message = (
        f"execution {running.execution_id} is owned by process {running.owner.pid} on "
        f"host {running.owner.host}, of which nothing is known here: waiting up to "
        f"{seconds:.0f} s for its lease to run out"
    )
    log.warning("%s", message)
    announcer = Announcer(settings.sink, launch.job.plan.job)
    announcer.tell(
        Event(kind=EventKind.LAUNCH_WAITING, seconds=seconds, message=message)
    )
    with trio.move_on_after(seconds):
        await settings.closing.wait()


def _execution(
    settings: LaunchSettings, launch: Launch, opened: Opened
) -> JobExecution:
    plan = launch.job.plan
    parameters = launch.parameters
    if opened.run is not None:
        parameters = parameters.with_run(opened.run)
    opened = evolve(opened, run=opened.run or launch.run)
    own = without_lineage(parameters)
    engine = JobTraversal(
        plan,
        opened,
        settings.owner_id,
        own.projection(),
        settings.new_id,
        heard=bool(launch.job.listeners),
    )
    context = JobContext(
        job=plan.job,
        instance_id=opened.instance_id,
        instance_key=parameters.instance_key(plan.job),
        execution_id=opened.execution_id,
        attempt=opened.attempt,
        parameters=MappingProxyType(own.values()),
        stop=StopToken(launch.above),
        state_of=engine.state_of,
    )
    boundary = Boundary(
        new_failure_id=settings.new_id,
        secrets=spellings(str(one.value) for one in parameters if one.secret),
        limiter=settings.limiter,
        store_error_text=settings.store_error_text,
    )
    announcer = Announcer(
        settings.sink,
        plan.job,
        opened.instance_id,
        opened.execution_id,
        opened.attempt,
    )
    environment = Environment(
        store=settings.store,
        stores=settings.stores,
        owner_id=settings.owner_id,
        context=context,
        boundary=boundary,
        announcer=announcer,
        nursery=settings.nursery,
        open_child=settings.open_child,
        watch=settings.watch,
        patience=settings.patience,
    )
    return JobExecution(launch.job, opened, engine, environment, parameters)
