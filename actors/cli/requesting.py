"""``triolet enqueue``, ``withdraw`` and ``requests``: launches that others make."""

from collections.abc import Sequence

from attrs import asdict

from ...storage.commands.requesting import ListLaunches, WithdrawLaunch
from ...storage.model.errors import InvalidValue
from ...storage.model.execution import COUNT_MAX
from ...storage.model.launch_request import LaunchRequest, RequestStatus
from ...storage.model.status import BatchStatus
from ...storage.stores import MEMORY
from ..job.enqueuing import request_to_launch
from ..plan.arguments import parse_arguments
from .answers import Answer
from .asking import ask, carry_out
from .confirming import confirm
from .formats import instant, pairs_text
from .operating import Asked
from .paging import check_page, page_lines, status_of
from .target import load_job

HEAD = [
    "request",
    "job",
    "parameters",
    "status",
    "requested (UTC)",
    "execution",
    "which is",
    "why",
]


def enqueue(target: str, pairs: Sequence[str], url: str, *, anew: bool) -> Answer:
    """Enter a launch request in the store that is there.

    Raises:
        TrioletError: Whatever refused the request, or the store failed.
    """
    refuse_memory(url)
    job = load_job(target)
    given = parse_arguments(job.parameters, pairs)
    asked = carry_out(url, request_to_launch(job, given, anew=anew), create=True)
    name = job.plan.job
    line = f"request {asked.request_id} waits for a 'triolet serve' of job {name}"
    return Answer(asked, [line])


def refuse_memory(url: str) -> None:
    """Refuse a store that ends with this process: nobody could serve its requests.

    Raises:
        InvalidValue: It is the memory store.
    """
    if url == MEMORY:
        reason = (
            "must outlast this process: name a SQLite file or a PostgreSQL database"
        )
        raise InvalidValue("the store of launch requests", reason)


def withdraw(url: str, request_id: int, asked: Asked, *, yes: bool) -> Answer:
    """Take back a request that nobody works on.

    Raises:
        ConfirmationMissing: Nobody said yes.
        TrioletError: Whatever refused it, or the store failed.
    """
    refuse_memory(url)
    words = asked.words
    command = WithdrawLaunch(
        request_id=request_id, actor=words.actor, reason=words.reason
    )
    before = min(request_id + 1, COUNT_MAX)
    for one in ask(url, ListLaunches(limit=1, before=before)).requests:
        if one.id == request_id and one.status is RequestStatus.REQUESTED:
            confirm(
                f"request {request_id} for job {one.job} waits; withdraw it, so that "
                "it is never launched",
                yes,
            )
    done = carry_out(url, command)
    again = ", as before" if done.already else ""
    return Answer(done, [f"request {request_id} is {done.request.status}{again}"])


def list_requests(
    url: str, job: str | None, status: str | None, limit: int, before: int | None
) -> Answer:
    """Give a page, newest first.

    Raises:
        InvalidValue: The limit or the status is not one, or it is the memory store.
        StoreError: There is no usable store.
    """
    refuse_memory(url)
    check_page(limit, before, "a request")
    wanted = status_of(RequestStatus, status)
    page = ask(url, ListLaunches(job, wanted, limit, before))
    more = page.requests[-1].id if page.more else None
    listed = list(zip(page.requests, page.outcomes, strict=True))
    rows = [_row(one, outcome) for one, outcome in listed]
    lines = page_lines(HEAD, rows, more, "no launch requests")
    value = [
        {**asdict(one, recurse=False), "execution_status": outcome}
        for one, outcome in listed
    ]
    return Answer(value, lines, more=more)


def _row(one: LaunchRequest, outcome: BatchStatus | None) -> list[str]:
    return [
        str(one.id),
        one.job,
        pairs_text(one.parameters),
        one.status.value,
        instant(one.requested_at),
        "" if one.execution_id is None else str(one.execution_id),
        "" if outcome is None else outcome.value,
        _why(one),
    ]


def _why(one: LaunchRequest) -> str:
    """Say why a request was refused, or who withdrew it and why."""
    if one.refusal is not None:
        return one.refusal.message
    if one.withdrawal is None:
        return ""
    reason = one.withdrawal.reason
    return f"by {one.withdrawal.actor}" + (f", {reason!r}" if reason else "")
