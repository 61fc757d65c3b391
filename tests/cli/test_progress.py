"""Progress is counts and a known fraction; nothing is invented."""

import re
from io import StringIO

import pytest
from attrs import define, field

from triolet.actors import BatchStatus, Counts, Event, EventKind
from triolet.actors.cli.block import fitted, terminal_size
from triolet.actors.cli.pace import WORKERS_SHOWN_MAX, Pace
from triolet.actors.cli.progress import NAMED_MAX, PLAIN_LINE_SECS, Progress

ERASE = "\r\x1b[K"
ERASE_ABOVE = "\x1b[A\x1b[K"


@define(eq=False)
class Screen:
    """A progress on a stream that can be read, by a clock that is moved by hand."""

    rewrites: bool
    width: int = 80
    height: int = 24
    now: float = 100.0
    stream: StringIO = field(factory=StringIO)
    progress: Progress = field(init=False)

    def __attrs_post_init__(self) -> None:
        self.progress = Progress(
            self.stream,
            lambda: self.now,
            self.rewrites,
            lambda: (self.width, self.height),
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


def start(screen: Screen, *nodes: str) -> None:
    """Start steps; each has its place as the number of its execution."""
    for step_id, node in enumerate(nodes, 1):
        screen.progress(Event(kind=EventKind.STEP_STARTED, node=node, step_id=step_id))


def tick(screen: Screen, after: float = 1.0) -> None:
    screen.now += after
    screen.progress.tick()


def test_what_runs_side_by_side_has_a_line_each() -> None:
    screen = Screen(rewrites=True)
    start(screen, "fx", "fees")
    tick(screen, 2)
    assert screen.text == "fx: 2.0 s\nfees: 2.0 s"
    screen.progress(
        Event(
            kind=EventKind.STEP_RESULT_COMMITTED,
            node="fx",
            step_id=1,
            status=BatchStatus.COMPLETED,
        )
    )
    tick(screen)
    assert screen.text.endswith(
        f"{ERASE}{ERASE_ABOVE}fx: COMPLETED, 2.0 s\nfees: 3.0 s"
    )
    screen.progress.end()
    assert screen.text.endswith(f"fees: 3.0 s{ERASE}")


def test_without_a_terminal_each_has_a_line_now_and_then() -> None:
    screen = Screen(rewrites=False)
    start(screen, "fx")
    screen.now += PLAIN_LINE_SECS - 1
    screen.progress(Event(kind=EventKind.STEP_STARTED, node="fees", step_id=9))
    for _ in range(10):
        tick(screen)
    assert [line.split(":")[0] for line in screen.text.splitlines()] == [
        "fx",
        "fees",
        "fx",
        "fees",
    ]


def test_a_low_terminal_shows_what_has_room() -> None:
    screen = Screen(rewrites=True, height=3)
    start(screen, *"abcdef")
    tick(screen)
    tick(screen)
    shown = f"a: 1.0 s\nb: 1.0 s{ERASE}{ERASE_ABOVE}a: 2.0 s\nb: 2.0 s"
    assert screen.text == shown


def test_the_narrowest_terminal_breaks_nothing() -> None:
    screen = Screen(rewrites=True, width=1, height=1)
    start(screen, "fx", "\N{SNOWMAN}")
    tick(screen)
    assert screen.text == ""


def test_a_line_is_cut_by_the_cells_that_it_takes() -> None:
    assert fitted("load: 5 items", 6) == "load: "
    assert fitted("\u8ca0\u8377: 5 items", 6) == "\u8ca0\u8377: "
    assert fitted("\u8ca0\u8377", 4) == "\u8ca0\u8377"
    assert fitted("\u8ca0", 0) == ""


def test_a_stream_without_a_terminal_has_the_usual_size(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("COLUMNS", "44")
    monkeypatch.setenv("LINES", "11")
    assert terminal_size(StringIO()) == (44, 11)


@define(eq=False)
class Parts:
    """The events of one partitioned step."""

    screen: Screen
    total: int = 4

    def plan(self, completed: int = 0) -> None:
        self.screen.progress(
            Event(
                kind=EventKind.PARTITIONS_PLANNED,
                node="book",
                step_id=1,
                total=self.total,
                completed=completed,
            )
        )

    def tell(
        self,
        kind: EventKind,
        key: str,
        status: BatchStatus | None = None,
        read: int = 0,
        message: str | None = None,
    ) -> None:
        self.screen.progress(
            Event(
                kind=kind,
                node="book",
                partition=key,
                step_id=sum(map(ord, key)),
                status=status,
                counts=Counts(read=read),
                message=message,
            )
        )

    def start(self, *keys: str, read: int = 0) -> None:
        for key in keys:
            self.tell(EventKind.STEP_STARTED, key, read=read)

    def commit(self, key: str, read: int) -> None:
        self.tell(EventKind.CHUNK_COMMITTED, key, read=read)

    def end(
        self, key: str, status: BatchStatus = BatchStatus.COMPLETED, read: int = 0
    ) -> None:
        self.tell(EventKind.STEP_RESULT_COMMITTED, key, status, read)

    def close(self, status: BatchStatus = BatchStatus.COMPLETED, read: int = 0) -> None:
        self.screen.progress(
            Event(
                kind=EventKind.STEP_RESULT_COMMITTED,
                node="book",
                step_id=1,
                status=status,
                counts=Counts(read=read),
            )
        )


def test_partitions_are_one_sum_and_only_bad_ones_are_named() -> None:
    screen = Screen(rewrites=False)
    parts = Parts(screen)
    parts.plan()
    parts.start(*"abc")
    for key in "ab":
        parts.end(key, read=10)
    tick(screen, PLAIN_LINE_SECS)
    parts.end("c", BatchStatus.FAILED)
    tick(screen, PLAIN_LINE_SECS)
    parts.close(BatchStatus.FAILED, read=20)
    assert screen.text.splitlines() == [
        "book: 2 of 4 partitions, 1 running, 4 items/s, 5.0 s",
        "book, partition c: FAILED",
        "book: 2 of 4 partitions, 1 failed, 2 items/s, 10 s",
        "book: FAILED, 2 of 4 partitions, 20 items, 10 s",
    ]


def test_a_few_workers_have_lines_of_their_own_on_a_terminal() -> None:
    screen = Screen(rewrites=True)
    parts = Parts(screen, total=1_000)
    parts.plan()
    parts.start("eu", "us")
    screen.now += 2
    parts.commit("eu", read=500)
    assert screen.text == (
        "book: 0 of 1,000 partitions, 2 running, 250 items/s, 2.0 s\n"
        "  eu: 500 items, 250/s, 2.0 s\n"
        "  us: 2.0 s"
    )


def test_many_workers_have_none() -> None:
    screen = Screen(rewrites=True)
    parts = Parts(screen, total=1_000)
    parts.plan()
    parts.start(*(f"{at}" for at in range(WORKERS_SHOWN_MAX + 1)))
    tick(screen)
    assert screen.text == "book: 0 of 1,000 partitions, 9 running, 1.0 s"


def test_a_restart_counts_what_was_completed_but_no_speed_of_it() -> None:
    screen = Screen(rewrites=True)
    parts = Parts(screen)
    parts.plan(completed=3)
    parts.start("d", read=700)
    screen.now += 1
    parts.commit("d", read=800)
    first, last = screen.text.split("\n", 1)
    assert first == "book: continues after 3 of 4 partitions"
    assert last.startswith("book: 3 of 4 partitions, 1 running, 100 items/s, 1.0 s\n")


def test_a_worker_that_never_began_may_fail_and_many_are_not_all_named() -> None:
    screen = Screen(rewrites=False)
    parts = Parts(screen, total=500)
    parts.plan()
    for at in range(500):
        parts.end(f"{at}", BatchStatus.FAILED)
    tick(screen, PLAIN_LINE_SECS)
    said = screen.text.splitlines()
    assert len(said) == NAMED_MAX + 1
    assert said[-1] == "book: 0 of 500 partitions, 500 failed, 5.0 s"


def test_a_key_cannot_disturb_the_terminal() -> None:
    screen = Screen(rewrites=True)
    parts = Parts(screen)
    parts.plan()
    parts.start("\x1b[2J" + "x" * 100)
    tick(screen)
    parts.end("\x1b[2J" + "x" * 100, BatchStatus.FAILED)
    assert "\x1b[2J" not in screen.text
    assert "\n  \\x1b[2J" + "x" * 22 + "...: 1.0 s" in screen.text


def test_workers_that_do_not_heed_a_stop_are_told_of_once() -> None:
    screen = Screen(rewrites=False)
    parts = Parts(screen)
    parts.plan()
    parts.start(*"ab")
    for key in "ab":
        parts.tell(EventKind.STOP_WAITING, key, message="'w' runs in a thread")
    assert screen.text == (
        "book, partition a: 'w' runs in a thread; Ctrl-C again ends the process now\n"
    )


def test_a_timeout_is_told_and_is_no_ctrl_c() -> None:
    screen = Screen(rewrites=False)
    screen.start()
    timeout, waiting = EventKind.STEP_TIMED_OUT, EventKind.STOP_WAITING
    screen.progress(Event(kind=timeout, node="load", seconds=90))
    screen.progress(Event(kind=waiting, node="load", message="it goes on"))
    screen.progress(Event(kind=EventKind.JOB_TIMED_OUT, job="nightly", seconds=5))
    screen.progress(Event(kind=EventKind.STOP_REQUESTED))
    screen.progress(Event(kind=waiting, node="load", message="it goes on"))
    assert screen.text.splitlines() == [
        "load: its timeout of 1:30 is over",
        "it goes on",
        "nightly: its timeout of 5.0 s is over",
        "it goes on; Ctrl-C again ends the process now",
    ]


def test_the_time_of_one_partition_that_is_over_is_told_by_its_end() -> None:
    screen = Screen(rewrites=False)
    parts = Parts(screen)
    parts.plan()
    parts.start("a")
    parts.tell(EventKind.STEP_TIMED_OUT, "a")
    assert screen.text == ""
