"""Lineage: whose child a job instance is, said by parameters with reserved names.

A child is identified by the instance, node and visit that run it, and by nothing else: its
own parameters are what the first attempt was given, whatever a later one would compute.
"""

from attrs import evolve, frozen

from .parameters import (
    RESERVED_PREFIX,
    JobParameter,
    ParameterKind,
    ParameterSet,
)

PARENT_PREFIX = f"{RESERVED_PREFIX}parent_"
PARENT_INSTANCE = f"{PARENT_PREFIX}instance"
PARENT_NODE = f"{PARENT_PREFIX}node"
PARENT_VISIT = f"{PARENT_PREFIX}visit"
"""Only of a later visit than the first."""
PARENT_EXECUTION = f"{PARENT_PREFIX}execution"


@frozen
class Lineage:
    """Which step of which job runs a child."""

    instance_id: int
    node: str
    """Names the rows of the step."""
    execution_id: int
    """The attempt that ran, or runs, this attempt of the child."""
    visit: int = 1
    """Which visit of the node in the instance it is; every visit has a child."""

    def instance_key(self, job: str) -> bytes:
        """Give the key of the child's instance."""
        return ParameterSet(self._identity).instance_key(job)

    @property
    def _identity(self) -> tuple[JobParameter, ...]:
        first = (
            JobParameter(PARENT_INSTANCE, ParameterKind.I64, self.instance_id),
            JobParameter(PARENT_NODE, ParameterKind.STRING, self.node),
        )
        if self.visit == 1:
            return first
        return (*first, JobParameter(PARENT_VISIT, ParameterKind.I64, self.visit))

    def of_child(self, own: ParameterSet) -> ParameterSet:
        """Make the parameters of an attempt of the child.

        Args:
            own: Those that the child's code sees.
        """
        execution = JobParameter(
            PARENT_EXECUTION, ParameterKind.I64, self.execution_id, identifying=False
        )
        free = (evolve(one, identifying=False) for one in own)
        return ParameterSet((*free, *self._identity, execution))


def lineage_of(parameters: ParameterSet) -> Lineage | None:
    """Tell whose child an attempt with these parameters is; None when nobody's."""
    values = parameters.values()
    match (
        values.get(PARENT_INSTANCE),
        values.get(PARENT_NODE),
        values.get(PARENT_EXECUTION),
        values.get(PARENT_VISIT, 1),
    ):
        case int(instance_id), str(node), int(execution_id), int(visit):
            return Lineage(instance_id, node, execution_id, visit)
    return None


def without_lineage(parameters: ParameterSet) -> ParameterSet:
    """Give what the code of the job sees of its parameters."""
    if lineage_of(parameters) is None:
        return parameters
    return ParameterSet(
        tuple(one for one in parameters if not one.name.startswith(PARENT_PREFIX))
    )
