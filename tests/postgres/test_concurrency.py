"""Branches that commit side by side on real servers."""

from tests.testing.jobs import nesting, partitioning, splitting
from triolet.actors import BatchStatus, open_runtime


async def test_a_split_ends_on_a_server_as_it_does_elsewhere(
    each_postgres_url: str,
) -> None:
    async with open_runtime(each_postgres_url) as runtime:
        failed = await runtime.launch(splitting(), day="2026-12-02")
        assert failed.status is BatchStatus.FAILED
        report = await runtime.launch(splitting(), day="2026-12-02")
        assert report.status is BatchStatus.COMPLETED
        detail = await runtime.show(report.execution_id)
    assert {"a", "b1", "d"} - {step.node for step in report.steps} == set()
    assert [one.source for one in detail.decisions if one.step_id is None] == [
        "both.join",
        "enough",
    ]


async def test_flows_in_branches_end_on_a_server_as_they_do_elsewhere(
    each_postgres_url: str,
) -> None:
    async with open_runtime(each_postgres_url) as runtime:
        failed = await runtime.launch(nesting(), day="2026-12-02")
        assert failed.status is BatchStatus.FAILED
        report = await runtime.launch(nesting(), day="2026-12-02")
        assert report.status is BatchStatus.COMPLETED
        detail = await runtime.show(report.execution_id)
    assert [one.source for one in detail.decisions] == [
        *("a", "b", "parts", "inner.join", "other.join", "f"),
        *("outer.join", "last", "z"),
    ]


async def test_partitions_end_on_a_server_as_they_do_elsewhere(
    each_postgres_url: str,
) -> None:
    async with open_runtime(each_postgres_url) as runtime:
        failed = await runtime.launch(partitioning(), day="2026-12-02")
        assert failed.status is BatchStatus.FAILED
        report = await runtime.launch(partitioning(), day="2026-12-02")
        assert report.status is BatchStatus.COMPLETED
        detail = await runtime.show(report.execution_id)
    assert [one.key for one in report.partitions] == [*"abcd"] * 2
    assert len(detail.partitions) == 8
    assert {one.status for one in detail.partitions} == {BatchStatus.COMPLETED}
    assert report.counts.written == 20
