"""The digests of flow records: what a decision was made upon, as 32 bytes.

``field`` puts an eight-byte big-endian length before its bytes; integers are eight
bytes wide. Every layout is durable and covered by golden vectors.
"""

from collections.abc import Iterable
from functools import lru_cache
from hashlib import sha256
from struct import Struct

from attrs import frozen

from .execution import Counts
from .status import BatchStatus

_U64 = 8
_TWO = Struct(">2Q")
_SIX = Struct(">6Q")


@lru_cache(maxsize=4096)
def _field(text: str) -> bytes:
    raw = text.encode()
    return len(raw).to_bytes(_U64, "big") + raw


def _u64(value: int) -> bytes:
    return value.to_bytes(_U64, "big")


def context_digest(envelope: str) -> bytes:
    """Digest a canonical envelope (a checkpoint's generation, a step's context)."""
    return sha256(envelope.encode()).digest()


def step_input(
    fingerprint: bytes,
    node: str,
    step_id: int,
    version: int,
    status: BatchStatus,
    exit_code: str,
    counts: Counts,
    context: str | None,
) -> bytes:
    """Digest one finished step as input of the transition that follows it."""
    parts = [
        b"oxide-batch.flow-step-input.v1\0",
        fingerprint,
        _field(node),
        _TWO.pack(step_id, version),
        _field(status),
        _field(exit_code),
        _SIX.pack(*counts.all()),
    ]
    if context is not None:
        parts.append(context_digest(context))
    return sha256(b"".join(parts)).digest()


def decider_input(
    fingerprint: bytes,
    node: str,
    revision: str,
    input_version: int,
    instance_id: int,
    parameters: bytes,
    preceding: bytes | None,
    visit: int = 1,
) -> bytes:
    """Digest all that a decider may depend on; equal input, equal decision.

    Args:
        fingerprint: Of the plan, 32 bytes.
        node: The decision's node id.
        revision: The decider's revision token.
        input_version: Version of the input contract, 1 to 2^32 - 1.
        instance_id: The job instance.
        parameters: The projection digest of the launch parameters.
        preceding: The step input digest of the preceding step, or the aggregate digest
            of the split whose join precedes, if there is one.
        visit: Which visit of the decision it is; the first one adds nothing.
    """
    parts = [
        b"oxide-batch.decider-input.v1\0",
        fingerprint,
        _field(node),
        _field(revision),
        input_version.to_bytes(4, "big"),
        _u64(instance_id),
        parameters,
    ]
    if preceding is not None:
        parts.append(preceding)
    if visit > 1:
        parts.append(_u64(visit))
    return sha256(b"".join(parts)).digest()


@frozen
class BranchInput:
    """What one branch of a split contributes to the digest of their aggregate."""

    status: BatchStatus
    exit_code: str
    steps: tuple[bytes, ...]
    """The step input digests of the steps that ran or were reused, in order."""


def split_aggregate(
    fingerprint: bytes, join: str, branches: Iterable[BranchInput]
) -> bytes:
    """Digest all branches of a split as input of the transition from its join.

    Args:
        fingerprint: Of the plan, 32 bytes.
        join: The join's node id.
        branches: In declared order; they are numbered from 0.
    """
    parts = [b"oxide-batch.split-aggregate-input.v1\0", fingerprint, _field(join)]
    for index, branch in enumerate(branches):
        parts += [_u64(index), _field(branch.status), _field(branch.exit_code)]
        parts += branch.steps
    return sha256(b"".join(parts)).digest()


WORKER_PREFIX = "__ob_partition_worker_"
"""Begins the node of every worker's step row, which never names a node of a plan."""


def partition_worker(manager: str, key: str) -> str:
    """Name the worker of one partition: both node and step name of its rows.

    It is the same in every attempt, so that limits and counts go on.

    Args:
        manager: Node id of the partitioned step.
        key: Of the partition.
    """
    raw = b"oxide-batch.local-partition-worker.v1\0"
    raw += manager.encode() + b"\0" + key.encode()
    return WORKER_PREFIX + sha256(raw).hexdigest()
