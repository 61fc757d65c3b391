"""Who may work on executions: owners and their leases."""

from attrs import frozen

from ..model.bounds import check_whole
from ..model.errors import Rejection, error
from .command import Command

LEASE = "the lease in microseconds"
LEASE_MICROS_MAX = 3_600_000_000
"""An hour; zero is a lease that has run out at once."""


@frozen(kw_only=True)
class OwnerFacts:
    """Who owns executions, as far as another process could check it."""

    host: str
    pid: int
    boot_id: str | None = None
    pid_namespace: str | None = None
    process_start: str | None = None


@frozen
class RegisterOwner(Command["OwnerRegistered"]):
    """Enter a new owner with a lease of that many microseconds."""

    facts: OwnerFacts
    lease: int

    def __attrs_post_init__(self) -> None:
        check_whole(LEASE, self.lease, 0, LEASE_MICROS_MAX)


@frozen
class OwnerRegistered:
    """The owner's id is its fencing token: higher than any before, never reused."""

    owner_id: int
    lease_until: int


@frozen
class RenewLease(Command["OwnerRegistered"]):
    """Extend an owner's lease; an expired one that nobody took is renewed too."""

    owner_id: int
    lease: int

    def __attrs_post_init__(self) -> None:
        check_whole(LEASE, self.lease, 0, LEASE_MICROS_MAX)


@frozen
class ReleaseOwner(Command["OwnerReleased"]):
    """End an owner's lease: whatever it still owns may be taken over at once."""

    owner_id: int


@frozen
class OwnerReleased:
    """The lease has ended."""


@error
class OwnerUnknown(Rejection):
    """No such owner is registered."""

    code = "owner_unknown"
    owner_id: int

    def __str__(self) -> str:
        return f"owner {self.owner_id} is not registered in this store"
