"""Definitions that may continue what another definition of the job began."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise

from attrs import evolve, field, frozen

from ..model.errors import InvalidValue, Rejection, error
from ..model.execution import Decision, StepExecution
from ..model.names import NameKind, check_name
from ..model.partition import PartitionExecution, is_worker
from .command import Command, Question
from .opening import Definition, Snapshot

Edge = tuple[bytes, bytes]
"""The fingerprints that an upgrade leads from and to."""


@frozen(kw_only=True)
class RegisterUpgrade(Command["UpgradeRegistered"]):
    """Let attempts under one definition be continued under another.

    An edge is direct: two of them are never put together for one restart. It renames
    nodes and keeps their state byte for byte; it cannot transform it.

    Raises:
        InvalidValue: Both definitions are the same, or the steps do not map one to one.
    """

    job: str
    key: str
    """Names the edge among those that lead to the same definition."""
    source: bytes = field(repr=False)
    """Fingerprint of a registered definition."""
    target: Definition
    """Registered by the same command when it is not yet."""
    steps: tuple[tuple[str, str], ...]
    """(node in the source, node in the target), sorted; what is not named is left."""

    def __attrs_post_init__(self) -> None:
        check_name(self.key, NameKind.REVISION)
        if self.source == self.target.fingerprint:
            raise InvalidValue("an upgrade", "must lead to a changed definition")
        before, after = {old for old, _ in self.steps}, {new for _, new in self.steps}
        if not self.steps:
            raise InvalidValue("an upgrade", "must carry over at least one node")
        if not len(before) == len(after) == len(self.steps):
            raise InvalidValue("an upgrade", "must map every node to one of its own")


@frozen
class UpgradeRegistered:
    """The edge is there; it may have been there before, exactly so."""

    unchanged: bool


@frozen
class FindDefinition(Question["Definition"]):
    """Give the definition of a job that is registered under a revision label."""

    job: str
    revision: str


@error
class DefinitionUnknown(Rejection, LookupError):
    """The job has no definition under this label or with this fingerprint."""

    code = "definition_unknown"
    job: str
    revision: str | None = None

    def __str__(self) -> str:
        label = "" if self.revision is None else f" of revision {self.revision!r}"
        return (
            f"job {self.job!r} has no definition{label} in this store: only one that "
            "was launched can be upgraded from"
        )


@error
class UpgradeConflict(Rejection):
    """The edge, or its key, is registered with another content."""

    code = "upgrade_conflict"
    job: str
    key: str

    def __str__(self) -> str:
        return (
            f"job {self.job!r} has another upgrade between these two revisions, or "
            f"under the name {self.key!r}, already: an upgrade is never changed"
        )


def carried_over(
    steps: Iterable[StepExecution],
    attempts: Sequence[tuple[int, bytes]],
    edges: Mapping[Edge, Mapping[str, str]],
) -> list[StepExecution]:
    """Name steps of earlier attempts as the last attempt's definition does.

    Args:
        steps: Of all attempts of an instance.
        attempts: (execution id, fingerprint), oldest first; last the one that begins.
        edges: The mappings of the upgrades between neighbours among them.

    Returns:
        The steps that have a node in the last definition, in their order.
    """
    place = {execution_id: index for index, (execution_id, _) in enumerate(attempts)}
    prints = [fingerprint for _, fingerprint in attempts]
    found = []
    for step in steps:
        node: str | None = step.node
        for edge in pairwise(prints[place[step.execution_id] :]):
            if edge[0] != edge[1] and node is not None and not is_worker(node):
                node = edges[edge].get(node)
        if node is not None:
            found.append(step if node == step.node else evolve(step, node=node))
    return found


def summed_up(
    steps: Sequence[StepExecution],
    decisions: Iterable[Decision],
    partitions: Iterable[PartitionExecution],
) -> Snapshot:
    """Make a snapshot of all steps of an instance, oldest first, and its decisions."""
    latest = {(step.node, step.visit): step for step in steps}
    starts = Counter((step.node, step.visit) for step in steps)
    return Snapshot(
        tuple(latest[key] for key in sorted(latest)),
        tuple((*key, starts[key]) for key in sorted(starts)),
        tuple(decisions),
        tuple(partitions),
    )
