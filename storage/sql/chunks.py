"""Committing a chunk in SQL, with the rows that user code writes beside it."""

from ..backend import Waits
from ..commands import (
    ChunkCommitted,
    CommitChunk,
    Enlist,
    Enlisted,
    StaleVersion,
)
from ..model.errors import InternalError
from ..model.status import BatchStatus, IllegalTransition
from .fencing import FENCE, check_fence, step_state
from .session import Session

_CHUNK = f"""
UPDATE triolet.step SET read_count = $5, process_count = $6, write_count = $7,
    filter_count = $8, commit_count = $9, rollback_count = $10, checkpoint = $11,
    version = version + 1
WHERE id = $3 AND execution_id = $1 AND version = $4 AND status = 'STARTED'
    AND {FENCE}
"""


def commit_chunk(db: Session, command: CommitChunk, now: int) -> Waits[ChunkCommitted]:
    """Make a chunk durable: the enlisted rows, then the checkpoint.

    The rows come first, so that user code that ends the transaction in spite of its
    contract takes its own rows with it and nothing of ours.
    """
    if command.write is not None:
        yield from _check_chunk(db, command)
        yield from db.write(command.write)
    changed = yield from db.change(
        _CHUNK,
        (
            command.execution_id,
            command.owner_id,
            command.step_id,
            command.version,
            *command.counts.all(),
            command.checkpoint,
        ),
    )
    if changed != 1:
        yield from _check_chunk(db, command)
        raise InternalError("a chunk matched no row")
    return ChunkCommitted(now)


def _check_chunk(db: Session, command: CommitChunk) -> Waits[None]:
    """Refuse a chunk of a lost execution, or of a step that has moved on."""
    yield from check_fence(db, command.execution_id, command.owner_id)
    status, version = yield from step_state(db, command.execution_id, command.step_id)
    if status is not BatchStatus.STARTED:
        raise IllegalTransition(status, BatchStatus.STARTED)
    if version != command.version:
        raise StaleVersion(command.version, version)


def enlist(db: Session, command: Enlist, now: int) -> Waits[Enlisted]:
    """Let user code write under the owner's fence."""
    yield from check_fence(db, command.execution_id, command.owner_id)
    yield from db.write(command.write)
    return Enlisted()
