"""``triolet list``: a page of executions."""

from ...storage.commands import ExecutionLine, ListExecutions
from ...storage.model.status import BatchStatus
from .answers import Answer
from .asking import ask
from .formats import instant, pairs_text, took
from .paging import check_page, page_lines, status_of

HEAD = [
    "execution",
    "job",
    "attempt",
    "status",
    "started (UTC)",
    "took",
    "run",
    "parameters",
]


def list_executions(
    url: str, job: str | None, status: str | None, limit: int, before: int | None
) -> Answer:
    """Give a page, newest first.

    Raises:
        InvalidValue: The limit or the status is not one.
        StoreError: There is no usable store.
    """
    check_page(limit, before, "an execution")
    wanted = status_of(BatchStatus, status)
    page = ask(url, ListExecutions(job, wanted, limit, before))
    more = page.lines[-1].execution.id if page.more else None
    rows = [_row(line) for line in page.lines]
    lines = page_lines(HEAD, rows, more, "no executions")
    return Answer(page.lines, lines, more=more)


def _row(line: ExecutionLine) -> list[str]:
    execution = line.execution
    return [
        str(execution.id),
        line.instance.job,
        str(execution.attempt),
        execution.status.value,
        instant(execution.started_at),
        took(execution.started_at, execution.ended_at, execution.failure),
        "" if line.instance.run is None else str(line.instance.run),
        pairs_text(execution.parameters),
    ]
