"""The report of a launch, for people."""

from collections.abc import Iterator

from ...storage.model.execution import Counts, Failure
from ...storage.model.status import BatchStatus
from ..job.report import LaunchReport
from .formats import duration, table

_NEXT = {
    BatchStatus.FAILED: "to continue it, mend the cause and give the same command again",
    BatchStatus.STOPPED: "to continue it, give the same command again",
    BatchStatus.UNKNOWN: "it cannot be continued before its outcome is resolved",
}


def report_lines(report: LaunchReport, seconds: float) -> Iterator[str]:
    """Write the whole report."""
    anew = f", run {report.run}" if report.run is not None else ""
    yield (
        f"job {report.job}: {report.status} in {duration(seconds)} "
        f"(execution {report.execution_id}, attempt {report.attempt}{anew})"
    )
    if report.took_over is not None:
        yield f"  took over execution {report.took_over}, whose process had died"
    elif report.restart_of is not None:
        yield f"  continued execution {report.restart_of}"
    rows = [
        [
            "  " + step.node,
            "reused" if step.reused else "run",
            step.status.value,
            _exit(step.status, step.exit_code),
            counts_text(step.counts),
        ]
        for step in report.steps
    ]
    yield from table(rows) if rows else ()
    if report.failure is not None:
        yield "  failure: " + failure_text(report.failure)
    if report.status in _NEXT:
        yield "  " + _NEXT[report.status]
        if report.run is not None and report.status.restartable:
            yield f"  with --run {report.run}, and without --new"


def _exit(status: BatchStatus, code: str) -> str:
    return "" if code == status.value else str(code)


def counts_text(counts: Counts) -> str:
    """Write the counts of a chunk step; nothing for a step without items."""
    if not any(counts.all()):
        return ""
    parts = [f"{counts.read:,} read", f"{counts.written:,} written"]
    if counts.filtered:
        parts.append(f"{counts.filtered:,} filtered")
    parts.append(f"{counts.committed:,} chunks")
    if counts.rolled_back:
        parts.append(f"{counts.rolled_back:,} rolled back")
    return ", ".join(parts)


def failure_text(failure: Failure) -> str:
    """Write why something failed."""
    where = f"{failure.where}: " if failure.where else ""
    kind = f"{failure.type}: " if failure.type else ""
    text = failure.message or failure.code
    return f"{where}{kind}{text} [{failure.category}]"


def outcome_of(report: LaunchReport) -> str:
    """Write the outcome of a job that did not complete, in one sentence."""
    why = f": {failure_text(report.failure)}" if report.failure is not None else ""
    return f"job {report.job!r} {report.status} (execution {report.execution_id}){why}"
