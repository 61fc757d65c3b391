"""Checks of single nodes of a plan, wherever it comes from.

The values may come from a lenient constructor or from the store, so that nothing is
taken for granted here, not even types.
"""

from collections.abc import Iterable, Iterator

from ...storage.model.errors import InvalidName
from ...storage.model.names import NameKind, check_name
from .plan import (
    VISITS_MAX,
    ChunkDeclaration,
    DecisionNode,
    JobDeclaration,
    JoinNode,
    PartitionedNode,
    PlanNode,
    SplitNode,
    StepNode,
    visit_limit_of,
)

U32_MAX = (1 << 32) - 1
LISTENERS_MAX = 32
PARTITIONS_MAX = 1024
DIGEST_BYTES = 32


def name_reasons(
    text: object, kind: NameKind, what: str | None = None
) -> Iterator[str]:
    """Say what is wrong with a name, if anything; *what* replaces its kind's label."""
    try:
        check_name(text, kind)
    except InvalidName as exc:
        yield f"the {what or exc.kind} {exc.reason}"


def count_reasons(value: object, what: str, most: int = U32_MAX) -> Iterator[str]:
    """Say what is wrong with a count that must be 1 to *most*, if anything."""
    if not isinstance(value, int) or isinstance(value, bool):
        yield f"the {what} must be an int, not {type(value).__name__}"
    elif not 1 <= value <= most:
        yield f"the {what} must be 1 to {most}, not {value}"


def texts(patterns: Iterable[object]) -> list[str]:
    """Give the patterns that are text; those that are not are reported elsewhere."""
    return [one for one in patterns if isinstance(one, str)]


def node_reasons(node: PlanNode) -> Iterator[str]:
    """Say all that is wrong with the names, revisions and counts of a node."""
    limit = visit_limit_of(node)
    if limit is not None:
        yield from count_reasons(limit, "visit limit", VISITS_MAX)
    match node:
        case StepNode():
            yield from _step_reasons(node)
        case DecisionNode():
            yield from name_reasons(node.revision, NameKind.REVISION)
            yield from count_reasons(node.input_version, "input version")
        case PartitionedNode():
            yield from _partitioned_reasons(node)
        case SplitNode() | JoinNode():
            return


def _partitioned_reasons(node: PartitionedNode) -> Iterator[str]:
    yield from name_reasons(node.step_name, NameKind.STEP)
    yield from _start_reasons(node)
    if node.partition_count is not None:
        yield from count_reasons(
            node.partition_count, "number of partitions", PARTITIONS_MAX
        )
    yield from name_reasons(node.partitioner, NameKind.REVISION, "planner revision")
    yield from name_reasons(node.aggregation, NameKind.REVISION, "aggregation revision")


def _start_reasons(node: StepNode | PartitionedNode) -> Iterator[str]:
    yield from count_reasons(node.start_limit, "start limit")
    allow: object = node.allow_start_if_complete
    if not isinstance(allow, bool):
        yield f"allow_start_if_complete must be a bool, not {type(allow).__name__}"


def _step_reasons(step: StepNode) -> Iterator[str]:
    yield from name_reasons(step.name, NameKind.STEP)
    yield from _start_reasons(step)
    restartable: object = step.restartable
    if not isinstance(restartable, bool):
        yield f"restartable must be a bool, not {type(restartable).__name__}"
    if len(step.listeners) > LISTENERS_MAX:
        count = len(step.listeners)
        yield f"there are {count} listeners, at most {LISTENERS_MAX} are allowed"
    for revision in step.listeners:
        yield from name_reasons(revision, NameKind.REVISION, "listener revision")
    if isinstance(step.declaration, ChunkDeclaration):
        yield from _chunk_reasons(step.declaration)
    elif isinstance(step.declaration, JobDeclaration):
        yield from _job_reasons(step.declaration)
    else:
        yield from name_reasons(step.declaration.revision, NameKind.REVISION)


def _chunk_reasons(chunk: ChunkDeclaration) -> Iterator[str]:
    yield from count_reasons(chunk.size, "chunk size")
    revisions = {
        "reader": chunk.reader_revision,
        "processor": chunk.processor_revision,
        "writer": chunk.writer_revision,
        "checkpoint": chunk.checkpoint_revision,
    }
    for component, revision in revisions.items():
        what = f"{component} revision"
        yield from name_reasons(revision, NameKind.REVISION, what)


def _job_reasons(child: JobDeclaration) -> Iterator[str]:
    yield from name_reasons(child.job, NameKind.JOB)
    yield from name_reasons(child.revision, NameKind.REVISION)
    if len(child.fingerprint) != DIGEST_BYTES:
        yield f"the fingerprint of its job must have {DIGEST_BYTES} bytes"
