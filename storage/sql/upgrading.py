"""Upgrades between definitions in SQL, and the history of an upgraded instance."""

from ..backend import Waits
from ..commands.opening import Definition, DefinitionDrift
from ..commands.upgrading import (
    DefinitionUnknown,
    FindDefinition,
    RegisterUpgrade,
    UpgradeConflict,
    UpgradeRegistered,
)
from ..envelope import canonical_json
from .definitions import BY_FINGERPRINT, BY_REVISION, insert_definition
from .session import Session

_EDGES = (
    "SELECT source_id, target_id, upgrade_key, steps FROM triolet.upgrade "
    "WHERE target_id = $1"
)
_INSERT = (
    "INSERT INTO triolet.upgrade (source_id, target_id, upgrade_key, steps, "
    "registered_at) VALUES ($1, $2, $3, $4, $5)"
)


def register_upgrade(
    db: Session, command: RegisterUpgrade, now: int
) -> Waits[UpgradeRegistered]:
    """Enter an edge, and its target where that is new."""
    job, target = command.job, command.target
    sources, targets, drifted = yield from db.fetch_each(
        [
            (BY_FINGERPRINT, (job, command.source)),
            (BY_FINGERPRINT, (job, target.fingerprint)),
            (BY_REVISION, (job, target.revision, target.fingerprint)),
        ]
    )
    if not sources:
        raise DefinitionUnknown(job)
    if drifted and not targets:
        raise DefinitionDrift(job, target.revision, drifted[0][0])
    source_id = sources[0][0]
    steps = canonical_json(dict(command.steps))
    if targets:
        for edge in (yield from db.fetch(_EDGES, (targets[0][0],))):
            if edge[0] == source_id or edge[2] == command.key:
                if (edge[0], *edge[2:]) == (source_id, command.key, steps):
                    return UpgradeRegistered(unchanged=True)
                raise UpgradeConflict(job, command.key)
    target_id = targets[0][0] if targets else None
    if target_id is None:
        target_id = yield from insert_definition(db, job, target, now)
    values = (source_id, target_id, command.key, steps, now)
    yield from db.change(_INSERT, values)
    return UpgradeRegistered(unchanged=False)


_DEFINITION = (
    "SELECT revision, format, fingerprint, manifest FROM triolet.definition "
    "WHERE job = $1 AND revision = $2"
)


def find_definition(
    db: Session, question: FindDefinition, now: int
) -> Waits[Definition]:
    """Give a registered definition."""
    rows = yield from db.fetch(_DEFINITION, (question.job, question.revision))
    if not rows:
        raise DefinitionUnknown(question.job, question.revision)
    revision, version, fingerprint, manifest = rows[0]
    return Definition(
        revision=revision, format=version, fingerprint=fingerprint, manifest=manifest
    )


_EDGE = "SELECT 1 FROM triolet.upgrade WHERE source_id = $1 AND target_id = $2"


def has_edge(db: Session, source_id: int, target_id: int | None) -> Waits[bool]:
    """Tell whether a definition may continue what another began."""
    if target_id is None:
        return False
    return bool((yield from db.fetch(_EDGE, (source_id, target_id))))
