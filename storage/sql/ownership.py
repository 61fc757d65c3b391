"""Owners and leases in SQL."""

from ..backend import Waits
from ..codec import decode_facts, encode_facts
from ..commands import (
    OwnerFacts,
    OwnerRegistered,
    OwnerReleased,
    OwnerUnknown,
    RegisterOwner,
    ReleaseOwner,
    RenewLease,
)
from .session import Session

_REGISTER = (
    "INSERT INTO triolet.owner (facts, registered_at, lease_until) VALUES ($1, $2, $3)"
)
_SET_LEASE = "UPDATE triolet.owner SET lease_until = $1 WHERE id = $2"
FACTS = "SELECT facts, lease_until FROM triolet.owner WHERE id = $1"


def register(db: Session, command: RegisterOwner, now: int) -> Waits[OwnerRegistered]:
    """Enter a new owner; the table never gives an id twice."""
    until = now + command.lease
    facts = encode_facts(command.facts)
    owner_id = yield from db.insert(_REGISTER, (facts, now, until))
    assert owner_id is not None
    return OwnerRegistered(owner_id, until)


def renew(db: Session, command: RenewLease, now: int) -> Waits[OwnerRegistered]:
    """Extend a lease."""
    until = now + command.lease
    yield from _set_lease(db, command.owner_id, until)
    return OwnerRegistered(command.owner_id, until)


def release(db: Session, command: ReleaseOwner, now: int) -> Waits[OwnerReleased]:
    """End a lease: zero lies before every clock."""
    yield from _set_lease(db, command.owner_id, 0)
    return OwnerReleased()


def _set_lease(db: Session, owner_id: int, until: int) -> Waits[None]:
    if (yield from db.change(_SET_LEASE, (until, owner_id))) != 1:
        raise OwnerUnknown(owner_id)


def facts_of(db: Session, owner_id: int) -> Waits[tuple[OwnerFacts, int]]:
    """Give an owner's facts and the end of its lease.

    Raises:
        OwnerUnknown: When there is no such owner.
    """
    rows = yield from db.fetch(FACTS, (owner_id,))
    if not rows:
        raise OwnerUnknown(owner_id)
    facts, until = rows[0]
    return decode_facts(facts), until
