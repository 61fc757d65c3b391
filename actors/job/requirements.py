"""What a job needs of its store, and the check before anything is written."""

from attrs import frozen

from ...storage.backend import Capability, Descriptor
from ...storage.model.errors import InsufficientPoolCapacity, UndeclaredCapability
from ..plan.compile import CompiledJob


@frozen
class Requirements:
    """What a job needs of its store."""

    capabilities: frozenset[Capability]
    connections: int = 1
    """That the runtime must have, the one for control included."""


def requirements_of(job: CompiledJob) -> Requirements:
    """Tell what a job and those inside of it need."""
    return Requirements(job.capabilities, job.connections)


def check_store(store: Descriptor, connections: int, needed: Requirements) -> None:
    """Refuse a job that the store, or the runtime's connections, cannot carry.

    Args:
        store: The store.
        connections: That the runtime has to it.
        needed: By the job.

    Raises:
        UndeclaredCapability: The store does not declare what the job needs.
        InsufficientPoolCapacity: There are fewer connections than the job needs.
    """
    missing = sorted(needed.capabilities - store.capabilities)
    if missing:
        raise UndeclaredCapability(store.kind, tuple(one.value for one in missing))
    configured = max(connections, store.stands_for)
    if configured < needed.connections:
        raise InsufficientPoolCapacity(needed.connections, configured)
