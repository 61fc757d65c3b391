"""Upgrades between definitions in memory."""

from ..commands import DefinitionDrift, Snapshot
from ..commands.continuing import cut_off, underway
from ..commands.opening import Definition
from ..commands.upgrading import (
    DefinitionUnknown,
    FindDefinition,
    RegisterUpgrade,
    UpgradeConflict,
    UpgradeRegistered,
    carried_over,
    summed_up,
)
from ..dump import StoredDefinition
from .questions import snapshot_of, step_of
from .tables import InstanceRow, Tables


def register_upgrade(
    tables: Tables, command: RegisterUpgrade, now: int
) -> UpgradeRegistered:
    """Enter an edge, and its target where that is new."""
    job = command.job
    source = tables.definitions.get((job, command.source))
    if source is None:
        raise DefinitionUnknown(job)
    target = registered(tables, job, command.target)
    if target is None:
        target = insert_definition(tables, job, command.target, now)
    for (source_id, target_id), edge in tables.upgrades.items():
        if target_id == target.id and (
            source_id == source.id or edge.key == command.key
        ):
            if (source_id, edge.key, edge.steps) == (
                source.id,
                command.key,
                command.steps,
            ):
                return UpgradeRegistered(unchanged=True)
            raise UpgradeConflict(job, command.key)
    tables.upgrades[source.id, target.id] = command
    return UpgradeRegistered(unchanged=False)


def find_definition(tables: Tables, question: FindDefinition, now: int) -> Definition:
    """Give a registered definition."""
    found = tables.revisions.get((question.job, question.revision))
    if found is None:
        raise DefinitionUnknown(question.job, question.revision)
    return found.definition


def registered(
    tables: Tables, job: str, definition: Definition
) -> StoredDefinition | None:
    """Find a definition; refuse another one under its label."""
    known = tables.definitions.get((job, definition.fingerprint))
    if known is None:
        other = tables.revisions.get((job, definition.revision))
        if other is not None:
            manifest = other.definition.manifest
            raise DefinitionDrift(job, definition.revision, manifest)
    return known


def insert_definition(
    tables: Tables, job: str, definition: Definition, now: int
) -> StoredDefinition:
    """Register a definition."""
    row = StoredDefinition(
        id=len(tables.definitions) + 1,
        job=job,
        definition=definition,
        registered_at=now,
    )
    tables.definitions[job, definition.fingerprint] = row
    tables.revisions[job, definition.revision] = row
    return row


def history_of(tables: Tables, instance: InstanceRow, fingerprint: bytes) -> Snapshot:
    """Collect what an instance has behind it, as that definition names it."""
    records = [one.record for one in instance.executions]
    dead = cut_off((one.id, one.created_at, one.failure) for one in reversed(records))
    kept = snapshot_of(tables, instance)
    same = {one.fingerprint for one in records} == {fingerprint}
    if same and not dead:
        return kept
    found = [step for one in instance.executions for step in one.steps.values()]
    steps = [step_of(step) for step in sorted(found, key=lambda step: step.id)]
    if same:
        return underway(kept, dead, steps)
    by_id = {one.id: one.definition.fingerprint for one in tables.definitions.values()}
    edges = {
        (by_id[source], by_id[target]): dict(edge.steps)
        for (source, target), edge in tables.upgrades.items()
    }
    attempts = [(one.id, one.fingerprint) for one in records]
    steps = carried_over(steps, [*attempts, (0, fingerprint)], edges)
    snapshot = summed_up(steps, kept.decisions, kept.partitions)
    return underway(snapshot, dead, steps)
