"""Partitions: what a partitioned step's work was divided into, and what came of each."""

from attrs import field, frozen

from .digests import WORKER_PREFIX
from .execution import NO_COUNTS, Counts, ExitCode
from .status import BatchStatus

KEY_BYTES_MAX = 128
CONTEXT_BYTES_MAX = 4096
PARTITIONS_MAX = 1024


@frozen
class PartitionRef:
    """One partition of one manager: the step execution that the plan belongs to."""

    manager_id: int
    ordinal: int
    """1, 2, ... in the order of the plan."""


@frozen
class NewPartition:
    """A partition as it was planned."""

    key: str = field(repr=False)
    context: str = field(repr=False)
    """Canonical JSON, an object."""


@frozen
class CopiedPlan:
    """The plan of an earlier attempt: what it completed stays, the rest is pending."""

    manager_id: int


@frozen(kw_only=True)
class PartitionExecution:
    """One partition in one attempt."""

    manager_id: int
    node: str
    """Of the manager."""
    visit: int = 1
    """Of the manager."""
    ordinal: int
    key: str = field(repr=False)
    context: str = field(repr=False)
    status: BatchStatus = BatchStatus.STARTING
    """STARTING while nobody works on it, STARTED while somebody does."""
    exit_code: str = ExitCode.UNKNOWN
    counts: Counts = NO_COUNTS
    worker_id: int | None = None
    """The step execution that works, or worked, on it."""
    version: int = 0

    @property
    def ref(self) -> PartitionRef:
        """Name it."""
        return PartitionRef(self.manager_id, self.ordinal)


def is_worker(node: str) -> bool:
    """Tell whether a step row is that of a partition's worker."""
    return node.startswith(WORKER_PREFIX)
