"""What a run of a scenario is played on: a fresh store, its clock, and processes.

Every process is a trio run with a virtual clock, a runtime without threads, and a
connection that is opened and given up. Only the store goes on, and the clock that it
lives by.
"""

import os
import shutil
import sqlite3
import tempfile
from collections.abc import Awaitable, Callable, Iterator
from contextlib import closing, contextmanager
from enum import StrEnum
from functools import partial
from pathlib import Path
from random import Random
from typing import TypeAlias, TypeVar

import trio
from attrs import define, evolve, field
from trio.testing import MockClock

from ...storage.backend import Backend
from ...storage.memory import MemoryBackend
from ...storage.stores import MEMORY, SQLITE, StoreOptions, open_store
from ..job.options import RuntimeOptions
from . import leftovers
from .effects import Effects, noting
from .equivalence import Ending, Rows, ending_of, rows_of
from .faults import FaultyBackend, Wire
from .scheduling import seeded_scheduling

T = TypeVar("T")

Main: TypeAlias = Callable[[Backend, RuntimeOptions], Awaitable[T]]
"""What a process does with its connection."""

MICROS = 1_000_000
NOON = 1_764_590_400
"""The instant at which every story begins, in seconds since 1970."""
RAM_DISK = Path("/dev/shm")
"""Where Linux has it; processes die in a scenario, never the machine."""


class StoreKind(StrEnum):
    """Which store a scenario uses; always a fresh one."""

    MEMORY = "memory"
    SQLITE = "sqlite"


class ProcessDied(Exception):
    """The process that made a launch has died, as a fault demanded."""


@define(eq=False)
class Stage:
    """A store and its clock, over the processes of one run; made by `open_stage`.

    Args:
        url: Of the store.
        seed: Of ids and of the order of tasks.
        lease: Of every process, in seconds.
        wire: What goes wrong with the store.
        effects: Of the run, so far.
    """

    url: str
    seed: int
    lease: float
    wire: Wire
    effects: Effects
    _random: Random = field(init=False)
    _began: float = field(default=NOON, init=False)
    _clock: MockClock = field(factory=MockClock, init=False)
    _memory: MemoryBackend | None = field(default=None, init=False)

    def __attrs_post_init__(self) -> None:
        self._random = Random(self.seed)
        if self.url == MEMORY:
            self._memory = MemoryBackend(self.now)

    def now(self) -> int:
        """Tell the time by the store's clock."""
        return round((self._began + self._clock.current_time()) * MICROS)

    def process(self, main: Main[T]) -> T:
        """Run *main* as a process of its own.

        Raises:
            ProcessDied: The process died; its lease has run out meanwhile.
            LeftBehind: Something runs on although *main* has come to its end.
        """
        self._began += self._clock.current_time()
        self._clock = MockClock(autojump_threshold=0)
        options = RuntimeOptions(inline=True, random=self._random, lease=self.lease)
        backend = FaultyBackend(self._open(), self.wire)
        threads = leftovers.threads()
        try:
            with seeded_scheduling(self._random.getrandbits(32)):
                result = trio.run(
                    _without_leftovers, main, backend, options, clock=self._clock
                )
        except KeyboardInterrupt:
            raise
        except BaseException as exc:
            if not backend.dead:
                raise
            self._began += self.lease + 1
            raise ProcessDied from exc
        finally:
            self._give_up(backend)
        leftovers.refuse_threads(threads)
        return result

    def ending(self) -> Ending:
        """Read what the run has come to."""
        backend = self._open()
        try:
            ending = ending_of(backend, self._rows())
        finally:
            self._give_up(backend)
        return evolve(ending, effects=dict(self.effects))

    def _rows(self) -> Rows:
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


async def _without_leftovers(
    main: Main[T], backend: Backend, options: RuntimeOptions
) -> T:
    before = leftovers.tasks()
    result = await main(backend, options)
    leftovers.refuse_tasks(before)
    return result


@contextmanager
def open_stage(kind: StoreKind, seed: int, lease: float, wire: Wire) -> Iterator[Stage]:
    """Set up a fresh store for one run."""
    with noting() as effects, _fresh_url(kind) as url:
        stage = Stage(url, seed, lease, wire, effects)
        try:
            yield stage
        finally:
            stage.close()


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


def _fast_folder() -> Path | None:
    return RAM_DISK if os.access(RAM_DISK, os.W_OK) else None
