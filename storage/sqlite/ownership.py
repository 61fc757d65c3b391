"""Owners and leases in SQLite."""

import sqlite3

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


def register(
    db: sqlite3.Connection, command: RegisterOwner, now: int
) -> OwnerRegistered:
    """Enter a new owner; AUTOINCREMENT never gives an id twice."""
    until = now + command.lease
    cursor = db.execute(
        "INSERT INTO triolet_owner (facts, registered_at, lease_until) VALUES (?, ?, ?)",
        (encode_facts(command.facts), now, until),
    )
    assert cursor.lastrowid is not None
    return OwnerRegistered(cursor.lastrowid, until)


def renew(db: sqlite3.Connection, command: RenewLease, now: int) -> OwnerRegistered:
    """Extend a lease."""
    until = now + command.lease
    _set_lease(db, command.owner_id, until)
    return OwnerRegistered(command.owner_id, until)


def release(db: sqlite3.Connection, command: ReleaseOwner, now: int) -> OwnerReleased:
    """End a lease: zero lies before every clock."""
    _set_lease(db, command.owner_id, 0)
    return OwnerReleased()


def _set_lease(db: sqlite3.Connection, owner_id: int, until: int) -> None:
    changed = db.execute(
        "UPDATE triolet_owner SET lease_until = ? WHERE id = ?", (until, owner_id)
    )
    if changed.rowcount != 1:
        raise OwnerUnknown(owner_id)


def facts_of(db: sqlite3.Connection, owner_id: int) -> tuple[OwnerFacts, int]:
    """Give an owner's facts and the end of its lease.

    Raises:
        OwnerUnknown: When there is no such owner.
    """
    row = db.execute(
        "SELECT facts, lease_until FROM triolet_owner WHERE id = ?", (owner_id,)
    ).fetchone()
    if row is None:
        raise OwnerUnknown(owner_id)
    return decode_facts(row[0]), row[1]
