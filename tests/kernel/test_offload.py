"""Where blocking work runs: measured, moved to a thread while slow, and back."""

import threading
from types import SimpleNamespace

import pytest
from attrs import define

from triolet.actors.kernel import offload
from triolet.actors.kernel.offload import PATIENCE_SECS, RETURN_SHARE, WEIGHT, Offload

PATIENCE = 0.01


@define
class Stopwatch:
    """The clock that work is measured by; it moves only when work moves it."""

    now: float = 0.0

    def work(self, seconds: float) -> int:
        """Take that long; give the thread that did it."""
        self.now += seconds
        return threading.get_ident()


@pytest.fixture
def watch(monkeypatch: pytest.MonkeyPatch) -> Stopwatch:
    watch = Stopwatch()
    monkeypatch.setattr(
        offload, "time", SimpleNamespace(perf_counter=lambda: watch.now)
    )
    return watch


def test_fast_work_stays_on_the_event_loop(watch: Stopwatch) -> None:
    place = Offload(adaptive=True, patience=PATIENCE)
    for _ in range(100):
        assert place.inline(watch.work, 0.9 * PATIENCE_SECS) == threading.get_ident()
    assert not place.threaded


def test_one_slow_piece_among_fast_ones_moves_nothing(watch: Stopwatch) -> None:
    place = Offload(adaptive=True, patience=PATIENCE)
    place.inline(watch.work, 0.9 * PATIENCE_SECS / WEIGHT)
    assert not place.threaded


def test_work_that_is_slow_again_and_again_belongs_into_the_thread(
    watch: Stopwatch,
) -> None:
    place = Offload(adaptive=True, patience=PATIENCE)
    taken = 0
    while not place.threaded and taken < 100:
        place.inline(watch.work, 2.5 * PATIENCE_SECS)
        taken += 1
    assert 1 < taken < 10


def test_work_that_is_fast_again_comes_back(watch: Stopwatch) -> None:
    place = Offload(adaptive=True, patience=PATIENCE)
    place.inline(watch.work, 500 * PATIENCE_SECS)
    moved = [place.threaded]
    while moved[-1] and len(moved) < 200:
        place.inline(watch.work, PATIENCE_SECS * RETURN_SHARE / 10)
        moved.append(place.threaded)
    assert 1 < len(moved) < 100


def test_speed_between_the_two_limits_leaves_work_where_it_is(
    watch: Stopwatch,
) -> None:
    slow, fast = (
        Offload(adaptive=True, patience=PATIENCE),
        Offload(adaptive=True, patience=PATIENCE),
    )
    slow.inline(watch.work, 10 * PATIENCE_SECS)
    assert slow.threaded
    between = PATIENCE_SECS * (1 + RETURN_SHARE) / 2
    for _ in range(50):
        slow.inline(watch.work, between)
        fast.inline(watch.work, between)
    assert (slow.threaded, fast.threaded) == (True, False)


def test_pinned_work_never_moves(watch: Stopwatch) -> None:
    place = Offload(adaptive=False, patience=PATIENCE)
    for _ in range(20):
        place.inline(watch.work, 100 * PATIENCE_SECS)
    assert not place.threaded


def test_work_that_raises_is_measured_too(watch: Stopwatch) -> None:
    def work(seconds: float) -> None:
        watch.now += seconds
        raise ValueError("broken")

    place = Offload(adaptive=True, patience=PATIENCE)
    with pytest.raises(ValueError, match="broken"):
        place.inline(work, 100 * PATIENCE_SECS)
    assert place.threaded


async def test_threaded_work_runs_in_another_thread_and_is_measured(
    watch: Stopwatch,
) -> None:
    place = Offload(adaptive=True, patience=PATIENCE)
    assert (
        await place.in_thread(watch.work, 100 * PATIENCE_SECS) != threading.get_ident()
    )
    assert place.threaded


def test_patience_is_a_setting(watch: Stopwatch) -> None:
    patient = Offload(adaptive=True, patience=1.0)
    for _ in range(50):
        patient.inline(watch.work, 0.9)
    assert not patient.threaded
    for _ in range(50):
        patient.inline(watch.work, 1.1)
    assert patient.threaded
