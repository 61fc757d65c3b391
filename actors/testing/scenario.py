"""A scenario: one job, launched like a story, the same way every time.

Every launch is a process of its own: a trio run with a virtual clock, a runtime without
threads, a connection that is opened and given up. Only the store goes on, and the
clock that it lives by.
"""

import os
import shutil
import sqlite3
import tempfile
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import closing, contextmanager
from enum import StrEnum
from functools import partial
from pathlib import Path
from random import Random
from typing import Any, TypeAlias, TypeVar

import trio
from attrs import define, field, frozen
from attrs.validators import ge
from trio.testing import MockClock

from ...storage.backend import Backend
from ...storage.commands import InstanceComplete
from ...storage.memory import MemoryBackend
from ...storage.model.status import BatchStatus
from ...storage.stores import MEMORY, SQLITE, StoreOptions, open_store
from ..composition import open_runtime
from ..job.options import LEASE_SECS, RuntimeOptions
from ..job.report import LaunchReport
from ..plan.compile import CompiledJob, compile_job
from ..plan.definition import Job
from .equivalence import Ending, ending_of, rows_of
from .faults import Fault, FaultyBackend, Wire
from .scheduling import seeded_scheduling

T = TypeVar("T")

AnyJob: TypeAlias = Job | CompiledJob
World: TypeAlias = AnyJob | Callable[[], AnyJob]
Main: TypeAlias = Callable[[Backend, RuntimeOptions], Awaitable[T]]
"""What a process does with its connection."""

MICROS = 1_000_000
NOON = 1_764_590_400
"""The instant at which every story begins, in seconds since 1970."""
PATIENCE_SECS = 86_400.0
"""Virtual seconds after which a launch counts as hanging."""


RAM_DISK = Path("/dev/shm")
"""Where Linux has it; processes die in a scenario, never the machine."""


class StoreKind(StrEnum):
    """Which store a scenario uses; always a fresh one."""

    MEMORY = "memory"
    SQLITE = "sqlite"


def _store_kind(word: str) -> StoreKind:
    return StoreKind(word)


def _source(job: AnyJob | Callable[[], World]) -> Callable[[], World]:
    return job if callable(job) else lambda: job


@frozen(kw_only=True)
class Run:
    """What happened in one run of a scenario."""

    ending: Ending
    commits: tuple[str, ...]
    """What was sent to be committed, in words, over all launches."""
    reports: tuple[LaunchReport, ...]
    """Of the launches that came to an end."""
    crashes: int
    """How many launches died."""


@frozen
class Scenario:
    """One job and how it is launched.

    A run launches the job until it is COMPLETED, at most *launches* times; a launch
    that died is repeated.

    Args:
        job: The definition, or a function that makes it, called once for every run: so
            user code may have a state. What the function gives may be such a function
            again, which is then called for every launch: then the outer one makes the
            world outside, and the inner one what a process makes anew.
        parameters: Of the launch.
        store: ``"memory"`` or ``"sqlite"``, a file in a temporary folder.
        seed: Of ids and of the order in which tasks that are ready are run.
        launches: How many launches the story has: more than one for a job that fails
            or stops first.
        lease: Seconds that a launch waits until it takes over from one that died.

    Runs are made outside of any trio run.
    """

    job: Callable[[], World] = field(converter=_source)
    parameters: Mapping[str, object] = field(factory=dict, kw_only=True)
    store: StoreKind = field(
        default=StoreKind.MEMORY, kw_only=True, converter=_store_kind
    )
    seed: int = field(default=0, kw_only=True)
    launches: int = field(default=1, kw_only=True, validator=ge(1))
    lease: float = field(default=LEASE_SECS, kw_only=True)

    @property
    def name(self) -> str:
        """The name of the job."""
        world = self.job()
        job = world() if callable(world) else world
        return job.name if isinstance(job, Job) else job.job

    def run(self, *faults: Fault) -> Run:
        """Play the story once, on a fresh store.

        Args:
            faults: What goes wrong in it, at different commits.
        """
        wire = Wire(faults)
        reports: list[LaunchReport] = []
        crashes = 0
        with open_stage(self, wire) as stage:
            while len(reports) < self.launches and not _complete(reports):
                try:
                    reports.append(stage.launch())
                except InstanceComplete:
                    break
                except ProcessDied:
                    crashes += 1
            ending = stage.ending()
        return Run(
            ending=ending,
            commits=tuple(wire.commits),
            reports=tuple(reports),
            crashes=crashes,
        )


def _complete(reports: list[LaunchReport]) -> bool:
    return bool(reports) and reports[-1].status is BatchStatus.COMPLETED


class ProcessDied(Exception):
    """The process that made a launch has died, as a fault demanded."""


@define(eq=False)
class Stage:
    """A store and its clock, over the processes of one run; made by `open_stage`."""

    scenario: Scenario
    wire: Wire
    url: str
    job: Callable[[], AnyJob]
    """Gives the job for the next launch."""
    _random: Random = field(init=False)
    _began: float = field(default=NOON, init=False)
    _clock: MockClock = field(factory=MockClock, init=False)
    _memory: MemoryBackend | None = field(default=None, init=False)

    def __attrs_post_init__(self) -> None:
        self._random = Random(self.scenario.seed)
        if self.url == MEMORY:
            self._memory = MemoryBackend(self.now)

    def now(self) -> int:
        """Tell the time by the store's clock."""
        return round((self._began + self._clock.current_time()) * MICROS)

    def launch(self) -> LaunchReport:
        """Launch the job in a process of its own, to its end.

        Raises:
            ProcessDied: The process died; its lease has run out meanwhile.
        """
        return self.process(self._launch)

    async def _launch(self, backend: Backend, options: RuntimeOptions) -> LaunchReport:
        with trio.fail_after(PATIENCE_SECS):
            async with open_runtime(backend, options) as runtime:
                return await runtime.launch(self.job(), self.scenario.parameters)

    def process(self, main: Main[T]) -> T:
        """Run *main* as a process of its own.

        Raises:
            ProcessDied: The process died; its lease has run out meanwhile.
        """
        self._began += self._clock.current_time()
        self._clock = MockClock(autojump_threshold=0)
        lease = self.scenario.lease
        options = RuntimeOptions(inline=True, random=self._random, lease=lease)
        backend = FaultyBackend(self._open(), self.wire)
        try:
            with seeded_scheduling(self._random.getrandbits(32)):
                return trio.run(partial(main, backend, options), clock=self._clock)
        except KeyboardInterrupt:
            raise
        except BaseException as exc:
            if not backend.dead:
                raise
            self._began += lease + 1
            raise ProcessDied from exc
        finally:
            self._give_up(backend)

    def ending(self) -> Ending:
        """Read what the run has come to."""
        backend = self._open()
        try:
            return ending_of(backend, self._rows())
        finally:
            self._give_up(backend)

    def _rows(self) -> Mapping[str, Mapping[tuple[Any, ...], int]]:
        if self._memory is not None:
            return rows_of(self._memory.business)
        with closing(sqlite3.connect(self.url.removeprefix(SQLITE))) as database:
            return rows_of(database)

    def _open(self) -> Backend:
        if self._memory is not None:
            return self._memory
        options = StoreOptions(
            clock=self.now, writer=partial(self._random.randbytes, 16)
        )
        return open_store(self.url, options)

    def _give_up(self, backend: Backend) -> None:
        if self._memory is None:
            backend.close()

    def close(self) -> None:
        """Forget the store."""
        if self._memory is not None:
            self._memory.close()


def _fast_folder() -> Path | None:
    return RAM_DISK if os.access(RAM_DISK, os.W_OK) else None


@contextmanager
def open_stage(scenario: Scenario, wire: Wire | None = None) -> Iterator[Stage]:
    """Set up a fresh store for one run of *scenario*."""
    world = scenario.job()
    job = world if callable(world) else _compiled_once(world)
    with _fresh_url(scenario.store) as url:
        stage = Stage(scenario, wire or Wire(), url, job)
        try:
            yield stage
        finally:
            stage.close()


def _compiled_once(job: AnyJob) -> Callable[[], CompiledJob]:
    compiled = compile_job(job) if isinstance(job, Job) else job
    return lambda: compiled


@contextmanager
def _fresh_url(kind: StoreKind) -> Iterator[str]:
    if kind is StoreKind.MEMORY:
        yield MEMORY
        return
    folder = tempfile.mkdtemp(prefix="triolet-", dir=_fast_folder())
    try:
        yield f"{SQLITE}{Path(folder, 'scenario.db')}"
    finally:
        shutil.rmtree(folder, ignore_errors=True)
