"""``triolet list``: a page of executions."""

from ...storage.commands import ExecutionLine, ListExecutions
from ...storage.model.errors import InvalidValue
from ...storage.model.status import BatchStatus
from .asking import ask
from .exit_codes import DONE
from .formats import elapsed, instant, table

PAGE_MAX = 500
HEAD = ["execution", "job", "attempt", "status", "started (UTC)", "took", "run"]


def list_executions(
    url: str, job: str | None, status: str | None, limit: int, before: int | None
) -> int:
    """Print a page, newest first.

    Raises:
        InvalidValue: The limit or the status is not one.
        StoreError: There is no usable store.
    """
    if not 1 <= limit <= PAGE_MAX:
        raise InvalidValue("--limit", f"must be 1 to {PAGE_MAX}")
    page = ask(url, ListExecutions(job, _status(status), limit, before))
    if not page.lines:
        print("no executions")
        return DONE
    for line in table([HEAD, *map(_row, page.lines)]):
        print(line)
    if page.more:
        last = page.lines[-1].execution.id
        print(f"there are more: add --before {last}")
    return DONE


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
