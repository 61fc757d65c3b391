"""Cases of the area flow: a stop that says where the next launch goes on."""

from collections.abc import Callable

import pytest

from tests.cases.world import World
from tests.job.harness import Trace
from triolet.actors import (
    COMPLETE,
    BatchStatus,
    Exit,
    Job,
    Node,
    Step,
    StepContext,
    Stop,
)


def holding(trace: Trace, node: str, code: str | None) -> Callable[..., Exit | None]:
    def work(ctx: StepContext) -> Exit | None:
        trace.calls.append(node)
        return None if code is None else Exit(code)

    return work


@pytest.mark.parametrize("code", [None, "HOLD"])
async def test_a_step_that_runs_in_every_attempt_does_not_move_where_a_stop_leads(
    world: World, trace: Trace, code: str | None
) -> None:
    """C008, also with an exit code of its own."""
    rules: dict[str, str | Stop] = {
        code or "COMPLETED": Stop(resume_at="s3"),
        "*": "s3",
    }
    job = Job(
        "flow",
        [
            trace.step("s1", allow_start_if_complete=True),
            Step("s2", holding(trace, "s2", code), then=rules),
            trace.step("s3"),
        ],
    )
    report = await world.launch(job)
    assert (report.status, report.exit_code) == (BatchStatus.STOPPED, "STOPPED")
    assert report.step("s2").exit_code == code or "COMPLETED"
    report = await world.launch(job)
    assert report.status is BatchStatus.COMPLETED
    assert trace.calls == ["s1", "s2", "s1", "s3"]
    assert report.step("s2").reused


async def test_one_instance_may_stop_at_two_places(world: World, trace: Trace) -> None:
    """C008."""
    nodes: list[Node] = [
        trace.step("s1", allow_start_if_complete=True),
        trace.step("s2", then={"*": Stop(resume_at="s4")}),
        trace.step("s3"),
        trace.step("s4", then={"*": Stop(resume_at="s5")}),
        trace.step("s5", then={"*": COMPLETE}),
    ]
    job = Job("flow", [*nodes[:2], *nodes[3:]])
    statuses = [(await world.launch(job)).status for _ in range(3)]
    assert statuses == [
        BatchStatus.STOPPED,
        BatchStatus.STOPPED,
        BatchStatus.COMPLETED,
    ]
    assert trace.calls == ["s1", "s2", "s1", "s4", "s1", "s5"]
