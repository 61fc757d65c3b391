"""How far running steps have come, in one line each.

Numbers are counts and a fraction that the reader knows; nothing is invented. After a
restart both include what earlier attempts did.
"""

from collections.abc import Sequence

from attrs import define, field, frozen

from ...storage.model.execution import NO_COUNTS, Counts
from ...storage.model.status import BatchStatus
from ..job.events import Event, EventKind
from .formats import counted, duration
from .output import plain

WORKERS_SHOWN_MAX = 8
KEY_CHARS_SHOWN = 32


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
class Running:
    """A step that runs, or a partition that is worked on."""

    name: str
    began: float
    base: Counts
    """What earlier attempts did."""
    counts: Counts = field(init=False)
    wrote: float = field(init=False)
    """When it was last told of in a line of its own."""
    _fraction: float | None = field(default=None, init=False)
    _begun_at: float | None = field(default=None, init=False)

    def __attrs_post_init__(self) -> None:
        self.counts = self.base
        self.wrote = self.began

    @property
    def items(self) -> int:
        """Count the items of this attempt."""
        return self.counts.read - self.base.read

    def hear(self, event: Event) -> None:
        """Take in how far it has come; neither number ever falls."""
        heard = event.counts or self.counts
        if heard.read >= self.counts.read:
            self.counts = heard
        if event.fraction is not None:
            self._fraction = max(self._fraction or 0.0, event.fraction)
            if self._begun_at is None:
                self._begun_at = self._fraction_before(event.fraction)

    def lines(self, now: float) -> Sequence[str]:
        """Write how far it has come."""
        pace = Pace(
            node=self.name,
            items=self.counts.read,
            done=self.items,
            seconds=now - self.began,
            fraction=self._fraction,
            begun_at=self._begun_at or 0.0,
        )
        return [pace.line()]

    def ending(self, event: Event, now: float) -> str:
        """Write what it came to."""
        counts = event.counts or self.counts
        items = f", {counted(counts.read, 'item')}" if counts.read else ""
        return f"{self.name}: {event.status}{items}, {duration(now - self.began)}"

    def _fraction_before(self, fraction: float) -> float:
        """Estimate by items where this attempt began; exact for a fresh step."""
        read = self.counts.read
        return fraction * self.base.read / read if read else 0.0


@define(eq=False)
class Divided:
    """A partitioned step that runs."""

    name: str
    began: float
    total: int
    completed: int
    """Partitions, over all attempts."""
    failed: int = field(default=0, init=False)
    """Partitions that are FAILED or UNKNOWN."""
    stuck: int = field(default=0, init=False)
    """Workers that do not heed a stop."""
    wrote: float = field(init=False)
    """When it was last told of in a line of its own."""
    _ended: int = field(default=0, init=False)
    """Items that workers read in this attempt which are done."""
    _workers: dict[int | None, Running] = field(factory=dict, init=False)

    def __attrs_post_init__(self) -> None:
        self.wrote = self.began

    @property
    def share(self) -> str:
        """Write how many partitions are completed."""
        return f"{self.completed:,} of {counted(self.total, 'partition')}"

    def hear(self, event: Event, now: float) -> None:
        """Take in what a worker has come to."""
        worker = self._workers.get(event.step_id)
        match event.kind:
            case EventKind.STEP_STARTED:
                base = event.counts or NO_COUNTS
                self._workers[event.step_id] = Running(key_text(event), now, base)
            case EventKind.STEP_RESULT_COMMITTED:
                self._workers.pop(event.step_id, None)
                if worker is not None:
                    worker.hear(event)
                    self._ended += worker.items
                self.completed += event.status is BatchStatus.COMPLETED
                self.failed += is_bad(event)
            case EventKind.STOP_WAITING:
                self.stuck += 1
            case _ if worker is not None:
                worker.hear(event)

    def lines(self, now: float) -> Sequence[str]:
        """Write the sum of all workers, and a line for each of a few."""
        seconds = now - self.began
        items = self._ended + sum(one.items for one in self._workers.values())
        parts = [f"{self.name}: {self.share}"]
        if self.failed:
            parts.append(f"{self.failed:,} failed")
        if self._workers:
            parts.append(f"{len(self._workers):,} running")
        if items and seconds > 0:
            parts.append(f"{items / seconds:,.0f} items/s")
        lines = [", ".join([*parts, duration(seconds)])]
        if len(self._workers) <= WORKERS_SHOWN_MAX:
            for one in self._workers.values():
                lines += [f"  {line}" for line in one.lines(now)]
        return lines

    def ending(self, event: Event, now: float) -> str:
        """Write what it came to."""
        read = 0 if event.counts is None else event.counts.read
        items = f", {counted(read, 'item')}" if read else ""
        seconds = duration(now - self.began)
        return f"{self.name}: {event.status}, {self.share}{items}, {seconds}"


def is_bad(event: Event) -> bool:
    """Tell whether something has ended as nobody wants it to."""
    return event.status in (BatchStatus.FAILED, BatchStatus.UNKNOWN)


def key_text(event: Event) -> str:
    """Write a partition's key, which may be anything, in few characters."""
    text = plain(event.partition or "")
    if len(text) <= KEY_CHARS_SHOWN:
        return text
    return text[: KEY_CHARS_SHOWN - 3] + "..."
