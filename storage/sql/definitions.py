"""Registered definitions in SQL."""

from ..backend import Waits
from ..commands.opening import Definition
from .session import Session

BY_FINGERPRINT = "SELECT id FROM triolet.definition WHERE job = $1 AND fingerprint = $2"
BY_REVISION = (
    "SELECT manifest FROM triolet.definition "
    "WHERE job = $1 AND revision = $2 AND fingerprint <> $3"
)
_INSERT = (
    "INSERT INTO triolet.definition (job, revision, format, fingerprint, manifest, "
    "registered_at) VALUES ($1, $2, $3, $4, $5, $6)"
)


def insert_definition(db: Session, job: str, one: Definition, now: int) -> Waits[int]:
    """Register a definition; give its id."""
    values = (
        job,
        one.revision,
        one.format,
        one.fingerprint,
        one.manifest,
        now,
    )
    row_id = yield from db.insert(_INSERT, values)
    assert row_id is not None
    return row_id
