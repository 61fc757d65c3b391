"""Asking in memory what an opening would find."""

from ..commands.opening import Opened, RunUnknown, Snapshot
from ..commands.previewing import PreviewOpening, opened_by
from .opening import may_follow, occurrence_of
from .tables import Tables
from .upgrading import history_of, registered


def preview_opening(tables: Tables, question: PreviewOpening, now: int) -> Opened:
    """Look as an opening does, and leave everything as it is."""
    command = question.opening
    definition = registered(tables, command.job, command.definition)
    occurrence = occurrence_of(tables, command)
    if command.existing and occurrence.row is None:
        raise RunUnknown(command.job)
    took_over, snapshot, latest = None, Snapshot(), None
    if (row := occurrence.row) is not None:
        previous = row.executions[-1]
        if may_follow(tables, command, previous, definition, now):
            took_over = previous.record.id
        snapshot = history_of(tables, row, command.definition.fingerprint)
        latest = (previous.record.id, previous.record.attempt)
    return opened_by(
        command,
        instance_id=0 if row is None else row.stored.instance.id,
        run=occurrence.run,
        previous=latest,
        took_over=took_over,
        snapshot=snapshot,
        now=now,
    )
