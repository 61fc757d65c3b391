"""Cases of the area CLI and operator: progress is counted, and never invented."""

import re
from collections.abc import Callable, Sequence
from io import StringIO

import pytest
from attrs import define, field

from tests.cases.world import World
from tests.job.components import ListReader, ListWriter, fail_once
from triolet.actors import (
    BatchStatus,
    Chunk,
    Event,
    Job,
    LaunchReport,
    Partition,
    PartitionedStep,
    RuntimeOptions,
    Step,
    open_runtime,
)
from triolet.actors.cli.progress import Progress

ITEMS = 1000
SIZE = 50


class Sized(ListReader):
    """Knows how much of its input is done."""

    def fraction(self) -> float:
        return self.position / len(self.items)


@define
class Shown:
    """What a person has seen of the items and of the percentage, over some launches."""

    world: World
    items: list[int] = field(factory=list)
    percentages: list[int] = field(factory=list)

    async def launch(self, job: Job) -> LaunchReport:
        stream = StringIO()
        now = [0.0]
        progress = Progress(stream, lambda: now[0], rewrites=True)

        def sink(event: Event) -> None:
            now[0] += 1
            progress(event)

        options = RuntimeOptions(inline=True, events=sink)
        async with open_runtime(self.world.url, options) as runtime:
            report = await runtime.launch(job)
        text = stream.getvalue()
        self.items += [
            int(found.replace(",", "")) for found in re.findall(r"([\d,]+) items", text)
        ]
        self.percentages += map(int, re.findall(r"(\d+)%", text))
        return report

    def never_fell(self) -> bool:
        return all(
            seen == sorted(seen) and (not seen or seen[-1] <= ITEMS)
            for seen in (self.items, self.percentages)
        )


def copying(reader: ListReader, *, failing: int | None = None) -> Job:
    writer = ListWriter()
    if failing is not None:
        writer.on_write = fail_once(failing)
    return Job("copy", [Step("copy", Chunk(reader, writer, size=SIZE))])


def middle(seen: Sequence[int]) -> bool:
    """Tell whether more was seen than the beginning and the end."""
    return len({*seen}) > 5


@pytest.mark.parametrize("make", [Sized, ListReader])
async def test_progress_is_counted_and_a_percentage_only_where_the_total_is_known(
    world: World, make: Callable[[Sequence[int]], ListReader]
) -> None:
    """C158."""
    shown = Shown(world)
    report = await shown.launch(copying(make(range(ITEMS))))
    assert report.status is BatchStatus.COMPLETED
    assert shown.never_fell()
    assert middle(shown.items)
    assert shown.items[-1] == ITEMS
    assert middle(shown.percentages) == (make is Sized)
    assert bool(shown.percentages) == (make is Sized)


async def test_a_restart_in_the_middle_begins_where_the_first_attempt_was(
    world: World,
) -> None:
    """C158."""
    shown = Shown(world)
    job = copying(Sized(range(ITEMS)), failing=620)
    assert (await shown.launch(job)).status is BatchStatus.FAILED
    assert max(shown.items) == 600
    before = len(shown.items)
    assert (await shown.launch(job)).status is BatchStatus.COMPLETED
    assert shown.never_fell()
    assert min(shown.items[before:]) >= 600
    assert shown.items[-1] == ITEMS


async def test_partitions_are_counted_together(world: World) -> None:
    """C158."""

    def make(partition: Partition) -> Chunk:
        first = 250 * (partition.ordinal - 1)
        return Chunk(Sized(range(first, first + 250)), ListWriter(), size=SIZE)

    declared = make(Partition(key="", ordinal=1, context={}))
    parts = PartitionedStep(
        "parts", declared, lambda ctx: [(key, {}) for key in "abcd"], 4, factory=make
    )
    shown = Shown(world)
    report = await shown.launch(Job("parted", [parts]))
    assert report.status is BatchStatus.COMPLETED
    sums = [seen for seen in shown.items if seen > 250]
    assert sums == sorted(sums)
    assert shown.items[-1] == ITEMS
