"""``triolet list``: a page of executions."""

from collections.abc import Iterator

from ...storage.commands import ExecutionLine, ExecutionPage, ListExecutions
from ...storage.model.errors import InvalidValue
from ...storage.model.execution import COUNT_MAX
from ...storage.model.status import BatchStatus
from .answers import Answer
from .asking import ask
from .formats import elapsed, instant, table

PAGE_MAX = 500
HEAD = ["execution", "job", "attempt", "status", "started (UTC)", "took", "run"]


def list_executions(
    url: str, job: str | None, status: str | None, limit: int, before: int | None
) -> Answer:
    """Give a page, newest first.

    Raises:
        InvalidValue: The limit or the status is not one.
        StoreError: There is no usable store.
    """
    if not 1 <= limit <= PAGE_MAX:
        raise InvalidValue("--limit", f"must be 1 to {PAGE_MAX}")
    if before is not None and not 0 <= before <= COUNT_MAX:
        raise InvalidValue("--before", "must be the number of an execution")
    page = ask(url, ListExecutions(job, _status(status), limit, before))
    more = page.lines[-1].execution.id if page.more else None
    return Answer(page.lines, _lines(page), more=more)


def _lines(page: ExecutionPage) -> Iterator[str]:
    if not page.lines:
        yield "no executions"
        return
    yield from table([HEAD, *map(_row, page.lines)])
    if page.more:
        last = page.lines[-1].execution.id
        yield f"there are more: add --before {last}"


def _status(word: str | None) -> BatchStatus | None:
    if word is None:
        return None
    try:
        return BatchStatus(word.upper())
    except ValueError:
        known = ", ".join(one.value for one in BatchStatus)
        raise InvalidValue("--status", f"must be one of {known}") from None


def _row(line: ExecutionLine) -> list[str]:
    execution = line.execution
    return [
        str(execution.id),
        line.instance.job,
        str(execution.attempt),
        execution.status.value,
        instant(execution.started_at),
        elapsed(execution.started_at, execution.ended_at),
        "" if line.instance.run is None else str(line.instance.run),
    ]
