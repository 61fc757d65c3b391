"""The report of a launch, for people."""

from collections.abc import Iterable, Iterator, Mapping

from ...storage.model.errors import listed
from ...storage.model.parameters import RESERVED_PREFIX
from ...storage.model.status import BatchStatus
from ..job.nested import child_of
from ..job.report import LaunchReport
from ..job.wording import failure_text
from ..plan.plan import (
    Plan,
    PlanNode,
    SplitNode,
    nodes_of,
)
from .formats import counts_text, duration, exit_text, table
from .partitioning import partitions_reported, reported_lines
from .visiting import last_visits, left_out, visit_text

_NEXT = {
    BatchStatus.FAILED: "to continue it, mend the cause and give the same command again",
    BatchStatus.STOPPED: "to continue it, give the same command again",
    BatchStatus.UNKNOWN: "it cannot be continued before its outcome is resolved: find "
    "out what it did, then use 'triolet recover {} --reason WHY' with --mark-failed or --abandon",
}
_OVER = "it cannot be continued: 'triolet run ... --new' runs it anew"


def report_lines(
    report: LaunchReport,
    seconds: float,
    plan: Plan | None = None,
) -> Iterator[str]:
    """Write the whole report; why the job failed is in `outcome_of`.

    Args:
        report: Of the launch.
        seconds: How long it took.
        plan: Of the job; tells which steps stand in which split.
    """
    anew = f", run {report.run}" if report.run is not None else ""
    yield (
        f"job {report.job}: {report.status} in {duration(seconds)} "
        f"(execution {report.execution_id}, attempt {report.attempt}{anew})"
    )
    if report.took_over is not None:
        yield f"  took over execution {report.took_over}, whose process had died"
    elif report.restart_of is not None:
        yield f"  continued execution {report.restart_of}"
    if report.reused:
        yield "  " + _parameters(report)
    yield from _steps(report, {} if plan is None else _splits(plan.nodes.values()))
    if report.status in _NEXT:
        hint = _OVER if report.over else _NEXT[report.status]
        yield "  " + hint.format(report.execution_id)
        yield from _unknown_children(report)
        if report.run is not None and report.status.restartable and not report.over:
            yield f"  with --run {report.run}, and without --new"


def _unknown_children(report: LaunchReport) -> Iterator[str]:
    """Name the executions that have to be resolved beside the job's own."""
    for one in report.steps:
        child = child_of(one.row)
        if child is not None and one.status is BatchStatus.UNKNOWN:
            yield (
                f"  and the same for execution {child.execution_id} of job {child.job}, "
                f"which step {one.node} ran"
            )


def _steps(
    report: LaunchReport, splits: Mapping[str, tuple[str, ...]]
) -> Iterator[str]:
    """Write the steps; those of branches stand below their split."""
    nodes: list[tuple[str, int]] = []
    rows: list[list[str]] = []
    shown = last_visits(report.steps, lambda step: (step.node, step.visit))
    for step in shown:
        around = splits.get(step.node, ())
        for depth, split in enumerate(around, 1):
            if (split, step.visit) not in nodes:
                nodes.append((split, step.visit))
                split_text = "  " * depth + visit_text(split, step.visit)
                rows.append([split_text, "", "", "", ""])
        nodes.append((step.node, step.visit))
        rows.append(
            [
                "  " * (1 + len(around)) + visit_text(step.node, step.visit),
                "reused" if step.reused else "run",
                step.status.value,
                exit_text(step.status, step.exit_code),
                counts_text(step.counts),
            ]
        )
    partitions = partitions_reported(report)
    for line, (node, visit) in zip(table(rows), nodes, strict=True):
        yield line
        yield from reported_lines(partitions, node, visit)
    yield from left_out(len(report.steps) - len(shown))


def _splits(
    nodes: Iterable[PlanNode], around: tuple[str, ...] = ()
) -> dict[str, tuple[str, ...]]:
    """Map the nodes of branches to the splits around them, the outermost first."""
    found: dict[str, tuple[str, ...]] = {}
    for node in nodes:
        if around:
            found[node.id] = around
        if isinstance(node, SplitNode):
            for branch in node.branches:
                found |= _splits(nodes_of(branch), (*around, node.id))
    return found


def _parameters(report: LaunchReport) -> str:
    """Tell where a restart's parameters came from."""
    others = [one.name for one in report.parameters if one.name not in report.reused]
    kept = f"parameters kept: {listed(report.reused)}"
    free = [name for name in others if not name.startswith(RESERVED_PREFIX)]
    return kept + (f"; given or by default: {listed(free)}" if free else "")


def outcome_of(report: LaunchReport, *, debug: bool = False) -> str:
    """Write the outcome of a job that did not complete, in one sentence.

    Args:
        report: Of the launch.
        debug: Whether a traceback was shown already.
    """
    head = f"job {report.job!r} {report.status} (execution {report.execution_id})"
    failure = report.failure
    if failure is None:
        return head
    raised = failure.type is not None and not debug
    hint = "; --debug shows the traceback" if raised else ""
    return f"{head}: {failure_text(failure)}{hint}"
