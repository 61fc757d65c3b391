"""What a person sees while a job runs: rewritten lines, or plain ones without a terminal.

There is a line for each step that runs; all partitions of a step share one.
"""

from collections.abc import Callable
from threading import RLock
from typing import TextIO

from attrs import define, field

from ...storage.model.execution import NO_COUNTS
from ..job.events import Event, EventKind
from .block import Block
from .formats import counted, duration
from .pace import Divided, Running, is_bad, key_text
from .visiting import visit_text

REWRITES_PER_SEC = 10
PLAIN_LINE_SECS = 5.0
NAMED_MAX = 20
"""How many partitions of a step are named because they failed."""
TOLD_VISITS_MAX = 20
"""How many visits of a step in a loop have a line that says how they ended."""
_AGAIN = "Ctrl-C again ends the process now"


def _usual_size() -> tuple[int, int]:
    return 80, 24


@define(eq=False)
class Progress:
    """An event sink that writes progress.

    Args:
        stream: Where to, standard error as a rule.
        clock: Seconds that never go back.
        rewrites: Whether the stream is a terminal, whose lines can be rewritten.
        size: Gives columns and rows of the terminal.
    """

    stream: TextIO
    clock: Callable[[], float]
    rewrites: bool
    size: Callable[[], tuple[int, int]] = _usual_size
    _running: dict[int | str | None, Running | Divided] = field(
        factory=dict, init=False
    )
    """Steps by their execution, partitioned ones by their place."""
    _hint: str = field(default=f"; {_AGAIN}", init=False)
    """What is added where work does not come to its end."""
    _wrote: float = field(default=float("-inf"), init=False)
    _block: Block = field(init=False)
    _lock: RLock = field(factory=RLock, init=False)

    def __attrs_post_init__(self) -> None:
        self._block = Block(self.stream, self.size)

    def __call__(self, event: Event) -> None:
        """Take in an event."""
        with self._lock:
            if event.partition is not None:
                self._partition(event)
            else:
                self._other(event)

    def tick(self) -> None:
        """Go on as time goes by, also when nothing is heard of any step."""
        with self._lock:
            now = self.clock()
            every = self._running.values()
            if not self.rewrites:
                for one in every:
                    if now - one.wrote >= PLAIN_LINE_SECS:
                        one.wrote = now
                        self._block.note(one.lines(now)[0])
            elif every and now - self._wrote >= 1 / REWRITES_PER_SEC:
                self._wrote = now
                self._block.show([line for one in every for line in one.lines(now)])

    def note(self, text: str) -> None:
        """Write a line that stays; from any thread."""
        with self._lock:
            self._block.note(text)

    def end(self) -> None:
        """Leave no line behind that would be rewritten."""
        with self._lock:
            self._running.clear()
            self._block.erase()

    def _other(self, event: Event) -> None:
        """Take in an event that is not one of a partition."""
        node = visit_text(event.node or "?", event.visit or 1)
        match event.kind:
            case EventKind.STEP_STARTED:
                counts = event.counts or NO_COUNTS
                self._begin(event.step_id, Running(node, self.clock(), counts))
                if counts.read:
                    self.note(f"{node}: continues after {counted(counts.read, 'item')}")
            case EventKind.PARTITIONS_PLANNED:
                total, completed = event.total or 0, event.completed or 0
                divided = Divided(node, self.clock(), total, completed)
                self._begin(_place(event), divided)
                if completed:
                    self.note(f"{node}: continues after {divided.share}")
            case EventKind.CHUNK_COMMITTED | EventKind.STEP_PROGRESSED:
                running = self._running.get(event.step_id)
                if isinstance(running, Running):
                    running.hear(event)
                    self.tick()
            case EventKind.STEP_RESULT_COMMITTED:
                by_step = event.step_id in self._running
                key = event.step_id if by_step else _place(event)
                ended = self._running.pop(key, None)
                told = is_bad(event) or (event.visit or 1) <= TOLD_VISITS_MAX
                if ended is not None and told:
                    self.note(ended.ending(event, self.clock()))
            case EventKind.COMPLETED_STEP_REUSED if event.visit in (None, 1):
                self.note(f"{node}: reused, it had completed")
            case EventKind.STEP_TIMED_OUT | EventKind.JOB_TIMED_OUT:
                # Nobody has pressed Ctrl-C.
                self._hint = ""
                what = event.node or event.job
                self.note(
                    f"{what}: its timeout of {duration(event.seconds or 0)} is over"
                )
            case EventKind.STOP_REQUESTED:
                self._hint = f"; {_AGAIN}"
            case EventKind.STOP_WAITING:
                self.note(f"{event.message}{self._hint}")
            case EventKind.LAUNCH_WAITING:
                self.note(event.message or "waiting")

    def _begin(self, key: int | str | None, what: Running | Divided) -> None:
        if not self._running:
            # What is quick shows only its end.
            self._wrote = self.clock()
        self._running[key] = what

    def _partition(self, event: Event) -> None:
        divided = self._running.get(_place(event))
        if not isinstance(divided, Divided):
            return
        divided.hear(event, self.clock())
        which = f"{divided.name}, partition {key_text(event)}"
        match event.kind:
            case EventKind.STEP_RESULT_COMMITTED if is_bad(event):
                if divided.failed <= NAMED_MAX:
                    self.note(f"{which}: {event.status}")
            case EventKind.STOP_WAITING if divided.stuck == 1:
                self.note(f"{which}: {event.message}{self._hint}")
        self.tick()


def _place(event: Event) -> str:
    """Name a node, which a job and its child may both have."""
    return f"{event.execution_id}: {event.node}"
