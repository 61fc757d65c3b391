"""Launch requests: asked for by anybody, claimed by lease, ended by who claimed them.

An execution that begins for a request is noted in it by the transaction that begins it
(see `OpenExecution.request_id`), so whoever claims the request after a crash knows what
became of the first launch.
"""

from collections.abc import Iterable

from attrs import evolve, frozen

from ..model.bounds import check_whole
from ..model.errors import InvalidParameter, Rejection, error
from ..model.execution import COUNT_MAX
from ..model.launch_request import LaunchRefusal, LaunchRequest, RequestStatus
from ..model.names import NameKind, check_name
from ..model.operation import check_words
from ..model.parameters import ParameterSet
from ..model.status import BatchStatus
from .command import Command, Question
from .ownership import OwnerFacts
from .questions import PAGE_MAX

LAUNCH_CHANNEL = "triolet_launch"
"""On which a store that can push says that a launch request waits."""


@frozen(kw_only=True)
class RequestLaunch(Command["LaunchRequested"]):
    """Ask for a launch by whoever serves the job.

    Raises:
        InvalidName: The job's name breaks the rules.
        InvalidParameter: One is secret, and so it could not be stored.
    """

    job: str
    parameters: ParameterSet
    anew: bool = False
    """Make a new instance by the next free run number."""

    @property
    def instance_key(self) -> bytes | None:
        """The instance that is continued, if it is known which."""
        return None if self.anew else self.parameters.instance_key(self.job)

    def __attrs_post_init__(self) -> None:
        check_name(self.job, NameKind.JOB)
        for one in self.parameters:
            if one.secret:
                raise InvalidParameter(one.name, SECRET_REFUSED)


SECRET_REFUSED = (
    "is secret: a launch request would have to store its value, so launch this job "
    "directly"
)


@frozen
class LaunchRequested:
    """The request waits under this number."""

    request_id: int


@frozen(kw_only=True)
class FindLaunches(Question["LaunchesFound"]):
    """Ask whether there is anything to claim; see `ClaimLaunches`."""

    owner_id: int
    jobs: tuple[str, ...]
    held: tuple[int, ...] = ()


@frozen
class Holder:
    """Somebody else who has claimed requests, and whose lease runs."""

    owner_id: int
    facts: OwnerFacts


@frozen
class LaunchesFound:
    """Whether there is something to claim, and who has claimed what is left."""

    waiting: bool
    holders: tuple[Holder, ...]


@frozen(kw_only=True)
class ClaimLaunches(Command["LaunchesClaimed"]):
    """Claim the oldest requests that wait, or that nobody lives any more to end.

    Of the requests for one instance only the oldest that has not ended is claimed.

    Raises:
        InvalidValue: The limit is out of its bounds.
    """

    owner_id: int
    jobs: tuple[str, ...]
    limit: int
    held: tuple[int, ...] = ()
    """Requests of this owner's that it works on; others of its own are claimed again."""
    dead_owners: tuple[int, ...] = ()
    """Owners that are proved dead, whose lease need not run out."""

    def __attrs_post_init__(self) -> None:
        check_whole("the number of launch requests to claim", self.limit, 1, PAGE_MAX)


@frozen
class LaunchesClaimed:
    """What is the owner's now, oldest first."""

    requests: tuple[LaunchRequest, ...]


@frozen(kw_only=True)
class EndLaunch(Command["LaunchEnded"]):
    """Say what came of a request, or give it back so that somebody else claims it."""

    request_id: int
    owner_id: int
    status: RequestStatus
    """DONE or REFUSED; REQUESTED gives it back."""
    refusal: LaunchRefusal | None = None
    """Why, when it is REFUSED."""

    def __attrs_post_init__(self) -> None:
        assert self.status not in (RequestStatus.CLAIMED, RequestStatus.WITHDRAWN)
        assert (self.status is RequestStatus.REFUSED) == (self.refusal is not None)


@frozen
class LaunchEnded:
    """The request stands as was said."""


@frozen(kw_only=True)
class WithdrawLaunch(Command["LaunchWithdrawn"]):
    """Take back a request that nobody works on; the request itself keeps the record.

    One that is WITHDRAWN stays as it is, with the words of the first who withdrew it.

    Raises:
        InvalidValue: A word is empty, too long or cannot be printed, or the request is
            no whole number.
        RequestNotFound: No store can have such a request.
    """

    request_id: int
    actor: str
    """Who asks; nobody checks it."""
    reason: str | None = None

    def __attrs_post_init__(self) -> None:
        check_words(None, self.actor, self.reason)
        if type(self.request_id) is int and not 0 < self.request_id <= COUNT_MAX:
            raise RequestNotFound(self.request_id)
        check_whole("the number of a launch request", self.request_id, 1, COUNT_MAX)


@frozen
class LaunchWithdrawn:
    """Nothing will come of the request any more."""

    request: LaunchRequest
    already: bool
    """Whether it had been withdrawn before."""


@frozen
class ListLaunches(Question["LaunchPage"]):
    """List launch requests, newest first.

    Raises:
        InvalidValue: *limit* or *before* is out of its bounds.
    """

    job: str | None = None
    status: RequestStatus | None = None
    limit: int = 50
    before: int | None = None
    """Only requests with a lower number: the last one of the page before."""

    def __attrs_post_init__(self) -> None:
        check_whole("the limit of a list", self.limit, 0, PAGE_MAX)
        if self.before is not None:
            check_whole("the request before which to list", self.before, 0, COUNT_MAX)


@frozen
class LaunchPage:
    """A page of launch requests and whether there are more."""

    requests: tuple[LaunchRequest, ...]
    more: bool
    outcomes: tuple[BatchStatus | None, ...]
    """How the execution of each request stands; None when none has begun."""


@error
class LaunchLost(Rejection):
    """The request is not this owner's any more: its lease ran out and it was claimed."""

    code = "launch_lost"
    request_id: int

    def __str__(self) -> str:
        """Say in one sentence what is wrong, where, and how to mend it."""
        return (
            f"launch request {self.request_id} was claimed by another process, because "
            "the lease of this one had run out"
        )


@error
class RequestNotFound(Rejection):
    """No launch request has that number."""

    code = "request_not_found"
    request_id: int

    def __str__(self) -> str:
        """Say in one sentence what is wrong, where, and how to mend it."""
        return (
            f"there is no launch request {self.request_id} in this store: 'triolet "
            "requests' lists those that are there"
        )


@error
class RequestNotWaiting(Rejection):
    """The request is worked on or has ended, so it cannot be withdrawn."""

    code = "request_not_waiting"
    request_id: int
    status: RequestStatus
    execution_id: int | None
    """Of the last execution that began for it."""

    def __str__(self) -> str:
        """Say in one sentence what is wrong, where, and how to mend it."""
        head = f"launch request {self.request_id} is {self.status}"
        if self.status.ended:
            return f"{head}: there is nothing to withdraw any more"
        if self.execution_id is None:
            return f"{head}: its launch is about to begin, and can be stopped then"
        return f"{head}: stop execution {self.execution_id} instead, which runs for it"


def free_of(
    found: Iterable[LaunchRequest], held: Iterable[int], limit: int
) -> tuple[LaunchRequest, ...]:
    """Leave out what the owner works on already; *found* holds as many more."""
    known = frozenset(held)
    return tuple(one for one in found if one.id not in known)[:limit]


def claimed(request: LaunchRequest, owner_id: int, now: int) -> LaunchRequest:
    """Give a request as it is once it is claimed."""
    return evolve(
        request, status=RequestStatus.CLAIMED, owner_id=owner_id, claimed_at=now
    )
