"""What users write for work in parallel: branches of a split, partitions of a step."""

from collections.abc import Iterable, Mapping
from enum import StrEnum
from typing import TYPE_CHECKING, Final, TypeAlias

from attrs import field, frozen

from ...storage.model.execution import End
from .converters import list_of, targets_if_any
from .steps import Chunk, Function, Step

if TYPE_CHECKING:
    from .definition import Decision

Inner: TypeAlias = "Step | Decision | Split | PartitionedStep"
"""What may stand in a branch."""

STATUS_AND_COUNTS: Final = "status-and-counts-v1"
"""The revision of the one rule by which partitions are aggregated."""


class FailurePolicy(StrEnum):
    """What the failure of a branch or partition means to the others; stored so."""

    CANCEL_SIBLINGS = "cancel_siblings"
    """The others are stopped, and those that wait are not begun."""
    DRAIN_SIBLINGS = "drain_siblings"
    """The others run to their end."""


def _on_failure(word: str) -> FailurePolicy | str:
    return FailurePolicy(word) if word in list(FailurePolicy) else word


def _branch(nodes: "Inner | Iterable[Inner]") -> tuple[Inner, ...]:
    # What is neither is recorded as a node; the compiler says what is wrong with it.
    return list_of(nodes if isinstance(nodes, Iterable) else [nodes], "a branch")


def _branches(
    branches: "Iterable[Inner | Iterable[Inner]]",
) -> tuple[tuple[Inner, ...], ...]:
    return tuple(map(_branch, list_of(branches, "the branches of a split")))


@frozen
class Split:
    """Branches that run side by side, and the join where they meet.

    The nodes of a branch follow each other as those of a job do, and their rules lead
    to nodes of the same branch, or end it: COMPLETE, FAIL and STOP give it its status,
    and the node that led there its exit code, if it ended alike. The join waits for
    all branches and goes on with the exit code of the first one, in declared order,
    with the worst status; UNKNOWN is worse than FAILED, and that worse than STOPPED.

    Args:
        id: Names the split; at most 128 bytes. No split can be the first node of a job.
        branches: 2 to 8, each a node or a list of 1 to 32: ``Step``,
            ``Decision``, ``PartitionedStep`` and ``Split``, splits at most 5 deep.
        join: Id of the join, ``ID.join`` unless given; no ``then`` may lead to it.
        then: Of the join; maps exit patterns to targets, as for a step.
        max_parallel: How many branches run at the same time, at most all.
        on_failure: ``"cancel_siblings"`` or ``"drain_siblings"``: what the failure of
            a branch means to the others.
        visit_limit: As for a ``Step``.
        pool_size: Connections to the store that the runtime must have, the one for
            control included, *max_parallel* + 1 to 1024; with fewer, the launch is
            refused before anything is written. None: any number will do, because
            branches share connections.
    """

    id: str
    branches: tuple[tuple[Inner, ...], ...] = field(converter=_branches)
    join: str | None = field(default=None, kw_only=True)
    then: Mapping[str, str | End] | None = field(
        default=None, kw_only=True, converter=targets_if_any, hash=False
    )
    max_parallel: int = field(default=1, kw_only=True)
    on_failure: FailurePolicy | str = field(
        default=FailurePolicy.CANCEL_SIBLINGS, kw_only=True, converter=_on_failure
    )
    visit_limit: int | None = field(default=None, kw_only=True)
    pool_size: int | None = field(default=None, kw_only=True)


@frozen
class PartitionedStep:
    """A step whose work is divided into partitions, each done by a worker of its own.

    The planner is asked once; its plan is durable before any worker begins, and a
    restart works off what is left of it. The exit code is that of the first partition,
    in the order of keys, with the worst status; the counts are the sum of all.

    Args:
        id: Names the node; at most 128 bytes.
        worker: The ``Step`` that does one partition; a function or a ``Chunk`` stands
            for a step called ``ID.worker``. It has no ``then``.
        planner: A plain or async function, called with a `PlannerContext`; it returns
            a list of pairs of a key, at most 128 bytes and unique, and a dict of JSON
            values.
        partitions: How many there are, 1 to 1024. None: as many as the planner
            returns, 0 to 1024; without any, the step is COMPLETED.
        name: A label for people; the id unless given.
        then: Maps exit patterns to targets, as for a step.
        max_workers: How many partitions are worked on at the same time, 1 to 64.
        on_failure: ``"cancel_siblings"`` or ``"drain_siblings"``: what the failure of
            a partition means to the others.
        start_limit: How often the node may be started within one instance of the job;
            the worker's own limit is for each partition.
        visit_limit: As for a ``Step``.
        allow_start_if_complete: Whether a restart plans and runs it again although it
            had completed.
        planner_revision: Changes with the meaning of the planner.
        factory: A plain or async function that is called with the `Partition` before
            its worker begins; it returns what does this partition, with readers and
            writers of its own: a ``Step`` like *worker*, or its work. A ``Chunk``
            needs one.
        aggregation_revision: Names the rule that makes one result of all.
        timeout: Seconds for all partitions together, from when their plan is durable,
            as for a step. Each one's own is the worker's.
        pool_size: As for a ``Split``, *max_workers* + 1 to 1024.
    """

    id: str
    worker: Step | Function | Chunk
    planner: Function
    partitions: int | None = None
    name: str | None = field(default=None, kw_only=True)
    then: Mapping[str, str | End] | None = field(
        default=None, kw_only=True, converter=targets_if_any, hash=False
    )
    max_workers: int = field(default=4, kw_only=True)
    on_failure: FailurePolicy | str = field(
        default=FailurePolicy.CANCEL_SIBLINGS, kw_only=True, converter=_on_failure
    )
    start_limit: int | None = field(default=None, kw_only=True)
    visit_limit: int | None = field(default=None, kw_only=True)
    allow_start_if_complete: bool = field(default=False, kw_only=True)
    factory: Function | None = field(default=None, kw_only=True)
    planner_revision: str = field(default="1", kw_only=True)
    aggregation_revision: str = field(default=STATUS_AND_COUNTS, kw_only=True)
    timeout: float | None = field(default=None, kw_only=True)
    pool_size: int | None = field(default=None, kw_only=True)
