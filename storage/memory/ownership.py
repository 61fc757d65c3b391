"""Owners and leases in memory."""

from attrs import evolve

from ..commands import (
    OwnerRegistered,
    OwnerReleased,
    RegisterOwner,
    ReleaseOwner,
    RenewLease,
)
from ..dump import StoredOwner
from .tables import Tables


def register(tables: Tables, command: RegisterOwner, now: int) -> OwnerRegistered:
    """Enter a new owner."""
    owner_id = len(tables.owners) + 1
    until = now + command.lease
    tables.owners[owner_id] = StoredOwner(
        id=owner_id, facts=command.facts, registered_at=now, lease_until=until
    )
    return OwnerRegistered(owner_id, until)


def renew(tables: Tables, command: RenewLease, now: int) -> OwnerRegistered:
    """Extend a lease, even an expired one."""
    until = now + command.lease
    _set_lease(tables, command.owner_id, until)
    return OwnerRegistered(command.owner_id, until)


def release(tables: Tables, command: ReleaseOwner, now: int) -> OwnerReleased:
    """End a lease: zero lies before every clock."""
    _set_lease(tables, command.owner_id, 0)
    return OwnerReleased()


def _set_lease(tables: Tables, owner_id: int, until: int) -> None:
    owner = tables.owner(owner_id)
    tables.owners[owner_id] = evolve(owner, lease_until=until)
