"""Progress is counts and a known fraction; nothing is invented."""

import re
from io import StringIO

from attrs import define, field

from triolet.actors import BatchStatus, Counts, Event, EventKind
from triolet.actors.cli.progress import PLAIN_LINE_SECS, Pace, Progress

ERASE = "\r\x1b[K"


@define(eq=False)
class Screen:
    """A progress on a stream that can be read, by a clock that is moved by hand."""

    rewrites: bool
    width: int = 80
    now: float = 100.0
    stream: StringIO = field(factory=StringIO)
    progress: Progress = field(init=False)

    def __attrs_post_init__(self) -> None:
        self.progress = Progress(
            self.stream, lambda: self.now, self.rewrites, self.width
        )

    def start(self, read: int = 0) -> None:
        self.progress(
            Event(kind=EventKind.STEP_STARTED, node="load", counts=Counts(read=read))
        )

    def commit(
        self, read: int, fraction: float | None = None, after: float = 1.0
    ) -> None:
        self.now += after
        kind = EventKind.CHUNK_COMMITTED
        counts = Counts(read=read)
        self.progress(Event(kind=kind, node="load", counts=counts, fraction=fraction))

    def end(self, read: int, status: BatchStatus = BatchStatus.COMPLETED) -> None:
        self.progress(
            Event(
                kind=EventKind.STEP_RESULT_COMMITTED,
                node="load",
                status=status,
                counts=Counts(read=read),
            )
        )

    @property
    def text(self) -> str:
        return self.stream.getvalue()

    @property
    def percentages(self) -> list[int]:
        return [int(found) for found in re.findall(r"(\d+)%", self.text)]


def test_a_terminal_gets_one_line_that_is_rewritten() -> None:
    screen = Screen(rewrites=True)
    screen.start()
    screen.commit(1_000, 0.25)
    screen.commit(2_000, 0.5)
    assert screen.text == (
        "load: 1,000 items, 1,000/s, 1.0 s, 25%, 3.0 s left"
        + ERASE
        + "load: 2,000 items, 1,000/s, 2.0 s, 50%, 2.0 s left"
    )


def test_the_rewritten_line_gives_way_to_a_line_that_stays() -> None:
    screen = Screen(rewrites=True)
    screen.start()
    screen.commit(1_000)
    screen.end(1_000)
    assert screen.text.endswith(ERASE + "load: COMPLETED, 1,000 items, 1.0 s\n")


def test_a_rewritten_line_never_wraps() -> None:
    screen = Screen(rewrites=True, width=20)
    screen.start()
    screen.commit(1_000, 0.25)
    assert screen.text == "load: 1,000 items, "


def test_without_a_terminal_there_are_plain_lines() -> None:
    screen = Screen(rewrites=False)
    screen.start()
    screen.commit(1_000, 0.25, after=PLAIN_LINE_SECS)
    assert screen.text == "load: 1,000 items, 200/s, 5.0 s, 25%, 15 s left\n"


def test_plain_lines_come_only_now_and_then() -> None:
    screen = Screen(rewrites=False)
    screen.start()
    for number in range(1, 61):
        screen.commit(number * 10)
    assert len(screen.text.splitlines()) == 12


def test_a_terminal_is_rewritten_at_most_ten_times_a_second() -> None:
    screen = Screen(rewrites=True)
    screen.start()
    for number in range(1, 1_001):
        screen.commit(number, after=0.001)
    assert 8 <= screen.text.count("items") <= 10


def test_a_quick_step_shows_only_its_end() -> None:
    screen = Screen(rewrites=False)
    screen.start()
    screen.commit(10, 0.5, after=0.01)
    screen.end(20)
    assert screen.text == "load: COMPLETED, 20 items, 0.0 s\n"


def test_there_is_no_percentage_when_the_total_is_unknown() -> None:
    screen = Screen(rewrites=True)
    screen.start()
    for number in range(1, 11):
        screen.commit(number * 100)
    screen.end(1_000)
    assert "%" not in screen.text
    assert "left" not in screen.text
    assert "load: 1,000 items, 100/s, 10 s" in screen.text


def test_the_percentage_never_falls() -> None:
    screen = Screen(rewrites=True)
    screen.start()
    for fraction in (0.1, 0.4, 0.3, 0.2, 0.5):
        screen.commit(100, fraction)
    assert screen.percentages == [10, 40, 40, 40, 50]


def test_after_a_restart_items_and_percentage_include_earlier_attempts() -> None:
    screen = Screen(rewrites=True)
    screen.start(read=500)
    screen.commit(600, 0.6)
    screen.commit(700, 0.7)
    assert screen.text.startswith("load: continues after 500 items\n")
    assert screen.percentages == [60, 70]
    assert "load: 700 items" in screen.text


def test_speed_and_time_left_are_those_of_this_attempt() -> None:
    screen = Screen(rewrites=True)
    screen.start(read=500)
    screen.commit(600, 0.6)
    assert screen.text.endswith("load: 600 items, 100/s, 1.0 s, 60%, 4.0 s left")


def test_no_time_is_left_when_nothing_was_gained() -> None:
    pace = Pace(node="load", items=5, done=0, seconds=3, fraction=0.5, begun_at=0.5)
    assert pace.line() == "load: 5 items, 3.0 s, 50%"


def test_a_tasklet_without_items_shows_its_fraction() -> None:
    screen = Screen(rewrites=True)
    screen.start()
    screen.now += 4
    kind = EventKind.STEP_PROGRESSED
    screen.progress(Event(kind=kind, node="load", fraction=0.5))
    assert screen.text == "load: 4.0 s, 50%, 4.0 s left"


def test_progress_before_any_step_is_not_shown() -> None:
    screen = Screen(rewrites=True)
    screen.commit(10)
    screen.end(10)
    assert screen.text == ""


def test_a_reused_step_and_waiting_are_said() -> None:
    screen = Screen(rewrites=False)
    kind = EventKind.COMPLETED_STEP_REUSED
    screen.progress(Event(kind=kind, node="load"))
    screen.progress(Event(kind=EventKind.LAUNCH_WAITING, message="waiting for a lease"))
    assert screen.text == "load: reused, it had completed\nwaiting for a lease\n"


def test_time_goes_by_also_when_nothing_is_heard_of_the_step() -> None:
    screen = Screen(rewrites=True)
    screen.start()
    screen.now += 3
    screen.progress.tick()
    assert screen.text == "load: 3.0 s"


def test_a_tick_without_a_step_writes_nothing() -> None:
    screen = Screen(rewrites=True)
    screen.progress.tick()
    assert screen.text == ""


def test_a_percentage_is_rounded_down() -> None:
    screen = Screen(rewrites=True)
    screen.start()
    screen.commit(999, 0.999)
    assert screen.percentages == [99]


def test_the_number_of_items_never_falls() -> None:
    screen = Screen(rewrites=True)
    screen.start()
    screen.commit(200)
    screen.commit(100)
    assert screen.text.endswith("load: 200 items, 100/s, 2.0 s")


class Closed(StringIO):
    """A stream that nobody reads any more."""

    def write(self, text: str) -> int:
        raise BrokenPipeError


def test_progress_that_nobody_can_see_harms_nobody() -> None:
    screen = Screen(rewrites=True, stream=Closed())
    screen.start(read=5)
    screen.commit(10, 0.5)
    screen.end(10)
    assert screen.text == ""


def test_what_runs_side_by_side_is_on_one_line() -> None:
    screen = Screen(rewrites=True)
    for step_id, node in enumerate(("fx", "fees"), 1):
        screen.progress(Event(kind=EventKind.STEP_STARTED, node=node, step_id=step_id))
    screen.now += 2
    screen.progress.tick()
    assert screen.text == "fx: 2.0 s | fees: 2.0 s"
    screen.progress(
        Event(
            kind=EventKind.STEP_RESULT_COMMITTED,
            node="fx",
            step_id=1,
            status=BatchStatus.COMPLETED,
        )
    )
    screen.now += 1
    screen.progress.tick()
    assert screen.text.endswith(f"{ERASE}fx: COMPLETED, 2.0 s\nfees: 3.0 s")


def test_partitions_are_counted_and_only_bad_ones_are_named() -> None:
    screen = Screen(rewrites=False)

    def tell(kind: EventKind, key: str, status: BatchStatus | None = None) -> None:
        counts = Counts(read=10)
        screen.progress(
            Event(kind=kind, node="book", partition=key, status=status, counts=counts)
        )

    for key in "abc":
        tell(EventKind.STEP_STARTED, key)
    for key in "ab":
        tell(EventKind.STEP_RESULT_COMMITTED, key, BatchStatus.COMPLETED)
    screen.now += PLAIN_LINE_SECS
    screen.progress.tick()
    tell(EventKind.STEP_RESULT_COMMITTED, "c", BatchStatus.FAILED)
    screen.progress(
        Event(
            kind=EventKind.STEP_RESULT_COMMITTED,
            node="book",
            step_id=1,
            status=BatchStatus.FAILED,
        )
    )
    assert screen.text.splitlines()[-3:] == [
        "book: 2 partitions done, 1 running, 20 items, 5.0 s",
        "book, partition c: FAILED",
        "book: FAILED, 2 partitions done, 5.0 s",
    ]
