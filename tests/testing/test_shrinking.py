"""Shrinking finds the smallest schedule that fails, however failing is defined."""

from hypothesis import given
from hypothesis import strategies as st

from triolet.actors.testing.schedules import (
    KINDS,
    Schedule,
    disturbance,
    line_of,
    parse,
)
from triolet.actors.testing.shrinking import shrunk

NUMBERS = st.integers(1, 60)
DISTURBANCES = st.builds(disturbance, st.sampled_from([*KINDS.values()]), NUMBERS)
SCHEDULES = st.lists(DISTURBANCES, min_size=1, max_size=4).map(tuple)


@given(SCHEDULES)
def test_a_schedule_is_read_as_it_was_written(schedule: Schedule) -> None:
    assert parse(line_of(schedule)) == schedule
    assert parse(line_of(schedule).replace(",", " , ")) == schedule


@given(SCHEDULES, st.data())
def test_what_needs_one_disturbance_is_shrunk_to_it(
    schedule: Schedule, data: st.DataObject
) -> None:
    """Failing needs one of its kind, at one of some numbers."""
    needed = data.draw(st.sampled_from(schedule))
    numbers = data.draw(st.sets(st.integers(1, needed.number))) | {needed.number}

    def fails(tried: Schedule) -> bool:
        moved = {needed.moved(number) for number in numbers}
        return not moved.isdisjoint(tried)

    assert shrunk(schedule, fails) == (needed.moved(min(numbers)),)


@given(SCHEDULES, st.data())
def test_what_needs_several_keeps_them(schedule: Schedule, data: st.DataObject) -> None:
    needed = data.draw(st.sets(st.sampled_from(schedule), min_size=1))
    small = shrunk(schedule, needed.issubset, runs=5000)
    assert set(small) == needed
    assert len(small) == len(needed)


@given(SCHEDULES)
def test_runs_are_limited_and_a_failing_one_is_given(schedule: Schedule) -> None:
    tried: list[Schedule] = [schedule]

    def fails(one: Schedule) -> bool:
        tried.append(one)
        return True

    assert shrunk(schedule, fails, runs=3) in tried
    assert len(tried) <= 4
