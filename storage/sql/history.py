"""What an instance has behind it, in SQL, as the definition of a new attempt names it."""

import json

from ..backend import Waits
from ..codec import decode_failure
from ..commands import Snapshot
from ..commands.continuing import cut_off, underway
from ..commands.upgrading import carried_over, summed_up
from .partitions import PLANS
from .rows import DECISION, STEP, decision_of, partition_of, step_of
from .session import Session

_ATTEMPTS = (
    "SELECT e.id, d.fingerprint, e.created_at, e.failure FROM triolet.execution e "
    "JOIN triolet.definition d ON d.id = e.definition_id "
    "WHERE e.instance_id = $1 ORDER BY e.attempt"
)
_MAPPINGS = (
    "SELECT a.fingerprint, b.fingerprint, u.steps FROM triolet.upgrade u "
    "JOIN triolet.definition a ON a.id = u.source_id "
    "JOIN triolet.definition b ON b.id = u.target_id WHERE b.job = $1"
)
_STEPS = f"{STEP} WHERE e.instance_id = $1 ORDER BY s.id"
_DECIDED = (
    f"{DECISION} WHERE e.instance_id = $1 AND c.kind IN ('DECIDER', 'SPLIT_AGGREGATE') "
    "ORDER BY c.execution_id DESC, c.sequence DESC"
)


def history_of(
    db: Session, instance_id: int, job: str, fingerprint: bytes
) -> Waits[Snapshot]:
    """Collect the history of an instance for an attempt under a definition of its job.

    All rows are fetched and summed up here: the store would have to read them, too.
    """
    key = (instance_id,)
    attempts, rows, decided, plans = yield from db.fetch_each(
        [(_ATTEMPTS, key), (_STEPS, key), (_DECIDED, key), (PLANS, key)]
    )
    steps = [step_of(row) for row in rows]
    if any(row[1] != fingerprint for row in attempts):
        mappings = yield from db.fetch(_MAPPINGS, (job,))
        steps = carried_over(
            steps,
            [*((row[0], row[1]) for row in attempts), (0, fingerprint)],
            {(row[0], row[1]): json.loads(row[2]) for row in mappings},
        )
    snapshot = summed_up(
        steps,
        [decision_of(row) for row in decided],
        [partition_of(row) for row in plans],
    )
    newest_first = reversed(attempts)
    dead = cut_off((row[0], row[2], decode_failure(row[3])) for row in newest_first)
    return underway(snapshot, dead, steps) if dead else snapshot
