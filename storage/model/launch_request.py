"""A launch that was asked for, and that any runtime which serves the job may make."""

from enum import StrEnum

from attrs import frozen

from .parameters import ParameterSet


class RequestStatus(StrEnum):
    """Where a launch request stands; the spellings are stored."""

    REQUESTED = "REQUESTED"
    """It waits for somebody who serves its job."""
    CLAIMED = "CLAIMED"
    """Somebody works on it, for as long as the lease of its owner runs."""
    DONE = "DONE"
    """The job was launched and has ended, in whatever way: see its execution."""
    REFUSED = "REFUSED"
    """The job cannot be launched in this way; nothing was run."""
    WITHDRAWN = "WITHDRAWN"
    """Whoever asked for it, or an operator, wants it no more."""

    @property
    def ended(self) -> bool:
        """Whether nothing will come of it any more."""
        return self not in (RequestStatus.REQUESTED, RequestStatus.CLAIMED)


@frozen
class LaunchRefusal:
    """Why a launch was refused."""

    code: str
    """The stable code of the error."""
    message: str


@frozen
class Withdrawal:
    """Who withdrew a launch request, and why."""

    actor: str
    """Nobody checks it."""
    reason: str | None


@frozen(kw_only=True)
class LaunchRequest:
    """One launch request; instants are microseconds since 1970 by the store's clock."""

    id: int
    job: str
    parameters: ParameterSet
    """None of them is secret."""
    anew: bool
    status: RequestStatus
    requested_at: int
    owner_id: int | None = None
    """Who claimed it last; None while it waits."""
    claimed_at: int | None = None
    execution_id: int | None = None
    """The last execution that began for it."""
    ended_at: int | None = None
    refusal: LaunchRefusal | None = None
    withdrawal: Withdrawal | None = None
