"""Cases of the area flow: loops."""

from tests.cases.world import World
from tests.job.harness import Trace, message_of
from triolet.actors import (
    COMPLETE,
    BatchStatus,
    DeciderContext,
    Decision,
    Job,
    Node,
    Step,
    StepContext,
)


async def test_each_lap_after_a_restart_runs_every_step(
    world: World, trace: Trace
) -> None:
    """C006: what an interrupted lap has done is skipped in that lap only."""

    def second(ctx: StepContext) -> None:
        trace.calls.append("B")
        if ctx.visit == 2 and ctx.attempt == 1:
            raise ValueError("B is broken")

    def lap(ctx: DeciderContext) -> str:
        return "AGAIN" if ctx.visit < 3 else "OUT"

    nodes: list[Node] = [
        trace.step("A"),
        Step("B", second),
        trace.step("C"),
        Decision("lap", lap, then={"AGAIN": "A", "OUT": COMPLETE}, visit_limit=3),
    ]
    job = Job("laps", nodes)
    report = await world.launch(job)
    assert message_of(report) == "B is broken"
    assert trace.calls == ["A", "B", "C", "A", "B"]
    trace.calls.clear()
    report = await world.launch(job)
    assert report.status is BatchStatus.COMPLETED
    assert trace.calls == ["B", "C", "A", "B", "C"]
    rows = world.query(
        "SELECT node, visit, count(*) FROM triolet_step GROUP BY node, visit"
    )
    assert rows == [
        *[("A", 1, 1), ("A", 2, 1), ("A", 3, 1)],
        *[("B", 1, 1), ("B", 2, 2), ("B", 3, 1)],
        *[("C", 1, 1), ("C", 2, 1), ("C", 3, 1)],
    ]
