"""The report of a launch, for people."""

from collections.abc import Iterator

from ...storage.commands import StartLimitReached
from ...storage.model.errors import listed
from ...storage.model.execution import Counts
from ...storage.model.parameters import RESERVED_PREFIX
from ...storage.model.status import BatchStatus
from ..job.report import LaunchReport
from ..job.wording import failure_text
from .formats import counted, duration, table
from .partitioning import partition_lines, partitions_reported

_NEXT = {
    BatchStatus.FAILED: "to continue it, mend the cause and give the same command again",
    BatchStatus.STOPPED: "to continue it, give the same command again",
    BatchStatus.UNKNOWN: "it cannot be continued before its outcome is resolved: find "
    "out what it did, then use 'triolet recover {}'",
}


def report_lines(report: LaunchReport, seconds: float) -> Iterator[str]:
    """Write the whole report; why the job failed is in `outcome_of`."""
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
    rows = [
        [
            "  " + step.node,
            "reused" if step.reused else "run",
            step.status.value,
            exit_text(step.status, step.exit_code),
            counts_text(step.counts),
        ]
        for step in report.steps
    ]
    partitions = partitions_reported(report)
    for line, step in zip(table(rows) if rows else (), report.steps, strict=False):
        yield line
        yield from partition_lines(partitions, step.node, few=0)
    if report.status in _NEXT:
        yield "  " + _next(report)
        if (
            report.run is not None
            and report.status.restartable
            and not _limited(report)
        ):
            yield f"  with --run {report.run}, and without --new"


def _parameters(report: LaunchReport) -> str:
    """Tell where a restart's parameters came from."""
    others = [one.name for one in report.parameters if one.name not in report.reused]
    kept = f"parameters kept: {listed(report.reused)}"
    free = [name for name in others if not name.startswith(RESERVED_PREFIX)]
    return kept + (f"; given or by default: {listed(free)}" if free else "")


def _next(report: LaunchReport) -> str:
    if _limited(report):
        return "it cannot be continued: give the command with --new to run it anew"
    return _NEXT[report.status].format(report.execution_id)


def _limited(report: LaunchReport) -> bool:
    failure = report.failure
    return failure is not None and failure.code == StartLimitReached.code


def exit_text(status: BatchStatus, code: str) -> str:
    """Write an exit code that tells more than the status."""
    return "" if code == status.value else str(code)


def counts_text(counts: Counts) -> str:
    """Write the counts of a chunk step; nothing for a step without items."""
    if not any(counts.all()):
        return ""
    parts = [f"{counts.read:,} read", f"{counts.written:,} written"]
    if counts.filtered:
        parts.append(f"{counts.filtered:,} filtered")
    parts.append(counted(counts.committed, "chunk"))
    if counts.rolled_back:
        parts.append(f"{counts.rolled_back:,} rolled back")
    return ", ".join(parts)


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
