"""What a job needs of its store, and the check before anything is written."""

from attrs import frozen

from ...storage.backend import Capability, Descriptor
from ...storage.model.errors import InsufficientPoolCapacity, UndeclaredCapability
from ..plan.compile import CompiledJob
from ..plan.plan import ChunkDeclaration, DeliveryMode, StepNode


@frozen
class Requirements:
    """What a job needs of its store."""

    capabilities: frozenset[Capability]
    connections: int = 1
    """That must be able to work at the same time."""


def requirements_of(job: CompiledJob) -> Requirements:
    """Tell what a job and those inside of it need; tasklets need no more than an owner."""
    needed = {Capability.EXECUTION_OWNERSHIP}
    nodes = [*job.plan.nodes.values(), *job.plan.embedded.values()]
    declared = [one.declaration for one in nodes if isinstance(one, StepNode)]
    atomic = any(
        isinstance(one, ChunkDeclaration) and one.delivery is DeliveryMode.ATOMIC
        for one in declared
    )
    if atomic or any(step.write is not None for step in job.steps.values()):
        needed.add(Capability.ENLISTED_WRITES)
    inside = list(map(requirements_of, job.children.values()))
    return Requirements(
        frozenset(needed).union(*(one.capabilities for one in inside)),
        max((one.connections for one in inside), default=1),
    )


def check_store(store: Descriptor, connections: int, needed: Requirements) -> None:
    """Refuse a job that the store, or the runtime's connections, cannot carry.

    Raises:
        UndeclaredCapability: The store does not declare what the job needs.
        InsufficientPoolCapacity: There are fewer connections than the job needs.
    """
    missing = sorted(needed.capabilities - store.capabilities)
    if missing:
        raise UndeclaredCapability(store.kind, tuple(one.value for one in missing))
    if connections < needed.connections:
        raise InsufficientPoolCapacity(needed.connections, connections)
