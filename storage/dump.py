"""The complete durable state of a store as comparable records.

Every backend gives the same shape, whatever its tables look like, so that tests can
demand that two stores with one history are equal. What only serves a backend's own
protocol (batch ids, markers) is left out.
"""

from attrs import frozen

from .commands import Definition, OwnerFacts
from .model.execution import Decision, JobExecution, JobInstance, StepExecution
from .model.launch_request import LaunchRequest
from .model.operation import Operation, RecoveryDecision, StopRequest
from .model.parameters import ParameterSet
from .model.partition import PartitionExecution


@frozen(kw_only=True)
class StoredOwner:
    """One owner and its lease."""

    id: int
    facts: OwnerFacts
    registered_at: int
    lease_until: int


@frozen(kw_only=True)
class StoredDefinition:
    """One definition under the label that registered it."""

    id: int
    job: str
    definition: Definition
    registered_at: int


@frozen(kw_only=True)
class StoredInstance:
    """One instance with its identifying parameters; secret values are blank."""

    instance: JobInstance
    parameters: ParameterSet


@frozen(kw_only=True)
class StoredUpgrade:
    """One edge between two definitions."""

    source_id: int
    target_id: int
    key: str
    steps: tuple[tuple[str, str], ...]


@frozen(kw_only=True)
class Dump:
    """All rows of a store, each table in the order of its key."""

    owners: tuple[StoredOwner, ...] = ()
    definitions: tuple[StoredDefinition, ...] = ()
    upgrades: tuple[StoredUpgrade, ...] = ()
    instances: tuple[StoredInstance, ...] = ()
    executions: tuple[JobExecution, ...] = ()
    steps: tuple[StepExecution, ...] = ()
    """With the transition that was committed in the same row."""
    decisions: tuple[Decision, ...] = ()
    """Transitions with a row of their own, by execution and sequence."""
    stops: tuple[StopRequest, ...] = ()
    recoveries: tuple[RecoveryDecision, ...] = ()
    operations: tuple[Operation, ...] = ()
    requests: tuple[LaunchRequest, ...] = ()
    partitions: tuple[PartitionExecution, ...] = ()
