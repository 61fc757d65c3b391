"""What a person sees while a job runs: one rewritten line, or plain ones without.

Numbers are counts and a fraction that the reader knows; nothing is invented. After a
restart both include what earlier attempts did.
"""

from collections.abc import Callable, Sequence
from contextlib import suppress
from threading import RLock
from typing import TextIO

from attrs import define, field, frozen

from ...storage.model.execution import NO_COUNTS, Counts
from ...storage.model.status import BatchStatus
from ..job.events import Event, EventKind
from .formats import counted, duration

REWRITES_PER_SEC = 10
PLAIN_LINE_SECS = 5.0


@frozen(kw_only=True)
class Pace:
    """How far a step has come, as of now."""

    node: str
    items: int
    done: int
    """Items of this attempt."""
    seconds: float
    fraction: float | None = None
    begun_at: float = 0.0
    """The fraction with which this attempt began."""

    def line(self) -> str:
        """Write it: step, items, items per second, elapsed, percentage, time left."""
        parts = [f"{self.node}:"]
        if self.items:
            parts.append(counted(self.items, "item") + ",")
        if self.done and self.seconds > 0:
            parts.append(f"{self.done / self.seconds:,.0f}/s,")
        parts.append(duration(self.seconds))
        if self.fraction is not None:
            parts[-1] += ","
            parts.append(f"{int(self.fraction * 100)}%")
            left = self._seconds_left(self.fraction)
            if left is not None:
                parts[-1] += ","
                parts.append(f"{duration(left)} left")
        return " ".join(parts)

    def _seconds_left(self, fraction: float) -> float | None:
        gained = fraction - self.begun_at
        if gained <= 0 or self.seconds <= 0:
            return None
        return (1 - fraction) / gained * self.seconds


@define(eq=False)
class _Running:
    node: str
    began: float
    base: Counts
    counts: Counts
    fraction: float | None = None
    begun_at: float | None = None

    def pace(self, now: float) -> Pace:
        return Pace(
            node=self.node,
            items=self.counts.read,
            done=self.counts.read - self.base.read,
            seconds=now - self.began,
            fraction=self.fraction,
            begun_at=self.begun_at or 0.0,
        )


@define(eq=False)
class _Divided:
    """A partitioned step: what its workers have come to."""

    node: str
    began: float
    running: int = 0
    done: int = 0
    items: int = 0

    def line(self, now: float) -> str:
        """Write it: partitions that are done and running, items, elapsed."""
        parts = [f"{self.node}: {counted(self.done, 'partition')} done"]
        if self.running:
            parts.append(f"{self.running:,} running")
        if self.items:
            parts.append(counted(self.items, "item"))
        return ", ".join([*parts, duration(now - self.began)])


@define(eq=False)
class Progress:
    """An event sink that writes progress.

    Args:
        stream: Where to, standard error as a rule.
        clock: Seconds that never go back.
        rewrites: Whether the stream is a terminal, whose line can be rewritten.
        width: Columns of the terminal.
    """

    stream: TextIO
    clock: Callable[[], float]
    rewrites: bool
    width: int = 80
    _running: dict[int | None, _Running] = field(factory=dict, init=False)
    """By step execution: branches run side by side."""
    _divided: dict[str, _Divided] = field(factory=dict, init=False)
    """By node."""
    _wrote: float = field(default=float("-inf"), init=False)
    _shown: bool = field(default=False, init=False)
    _lock: RLock = field(factory=RLock, init=False)

    def __call__(self, event: Event) -> None:
        """Take in an event."""
        if event.partition is not None:
            self._partition(event)
            return
        match event.kind:
            case EventKind.STEP_STARTED:
                counts = event.counts or NO_COUNTS
                node = event.node or "?"
                running = _Running(node, self.clock(), counts, counts)
                if not self._running:
                    self._wrote = self.clock()
                self._running[event.step_id] = running
                if counts.read:
                    self.note(f"{node}: continues after {counted(counts.read, 'item')}")
            case EventKind.CHUNK_COMMITTED | EventKind.STEP_PROGRESSED:
                self._progressed(event)
            case EventKind.STEP_RESULT_COMMITTED:
                self._ended(event)
            case EventKind.COMPLETED_STEP_REUSED:
                self.note(f"{event.node}: reused, it had completed")
            case EventKind.STOP_WAITING:
                self.note(f"{event.message}; Ctrl-C again ends the process now")
            case EventKind.LAUNCH_WAITING:
                self.note(event.message or "waiting")

    def tick(self) -> None:
        """Go on as time goes by, also when nothing is heard of the step."""
        with self._lock:
            now = self.clock()
            pause = 1 / REWRITES_PER_SEC if self.rewrites else PLAIN_LINE_SECS
            lines = [one.pace(now).line() for one in self._running.values()]
            lines += [one.line(now) for one in self._divided.values()]
            if lines and now - self._wrote >= pause:
                self._wrote = now
                self._show(lines)

    def note(self, text: str) -> None:
        """Write a line that stays; from any thread."""
        with self._lock:
            self._clear()
            self._write(text + "\n")

    def _partition(self, event: Event) -> None:
        node = event.node or "?"
        divided = self._divided.get(node)
        if divided is None:
            divided = self._divided[node] = _Divided(node, self.clock())
            self._wrote = self.clock()
        match event.kind:
            case EventKind.STEP_STARTED:
                divided.running += 1
            case EventKind.STEP_RESULT_COMMITTED:
                divided.running -= 1
                divided.done += event.status is BatchStatus.COMPLETED
                divided.items += 0 if event.counts is None else event.counts.read
                if event.status is not BatchStatus.COMPLETED:
                    self.note(f"{node}, partition {event.partition}: {event.status}")
            case EventKind.STOP_WAITING:
                self.note(event.message or "waiting")
        self.tick()

    def _progressed(self, event: Event) -> None:
        running = self._running.get(event.step_id)
        if running is None:
            return
        heard = event.counts or running.counts
        if heard.read >= running.counts.read:
            running.counts = heard
        if event.fraction is not None:
            running.fraction = max(running.fraction or 0.0, event.fraction)
            if running.begun_at is None:
                running.begun_at = self._fraction_before(running, event.fraction)
        self.tick()

    def _fraction_before(self, running: _Running, fraction: float) -> float:
        """Estimate by items where this attempt began; exact for a fresh step."""
        read = running.counts.read
        return fraction * running.base.read / read if read else 0.0

    def _show(self, lines: Sequence[str]) -> None:
        if self.rewrites:
            self._clear()
            self._write(" | ".join(lines)[: self.width - 1])
            self._shown = True
        else:
            self._write("".join(f"{line}\n" for line in lines))

    def _write(self, text: str) -> None:
        """Write, unless nobody can hear it: progress never ends a job."""
        with suppress(OSError):
            self.stream.write(text)
            self.stream.flush()

    def _ended(self, event: Event) -> None:
        divided = self._divided.pop(event.node or "?", None)
        if divided is not None:
            done = counted(divided.done, "partition")
            seconds = duration(self.clock() - divided.began)
            self.note(f"{divided.node}: {event.status}, {done} done, {seconds}")
        running = self._running.pop(event.step_id, None)
        if running is None:
            return
        counts = event.counts or running.counts
        seconds = duration(self.clock() - running.began)
        items = f", {counted(counts.read, 'item')}" if counts.read else ""
        self.note(f"{running.node}: {event.status}{items}, {seconds}")

    def _clear(self) -> None:
        if self._shown:
            self._write("\r\x1b[K")
            self._shown = False
