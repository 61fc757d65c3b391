"""Asking in SQL what an opening would find."""

from ..backend import Waits
from ..commands.opening import Opened, RunUnknown, Snapshot
from ..commands.previewing import PreviewOpening, opened_by
from .history import history_of
from .opening import free_run, look, may_follow
from .session import Session


def preview_opening(db: Session, question: PreviewOpening, now: int) -> Waits[Opened]:
    """Look as an opening does, and leave everything as it is."""
    command = question.opening
    parameters, run = command.parameters, None
    if command.anew:
        parameters, run = yield from free_run(db, command)
    found = yield from look(db, command, parameters, locking=False, owned=False)
    if command.existing and found.instance_id is None:
        raise RunUnknown(command.job)
    took_over, snapshot, latest = None, Snapshot(), None
    if found.instance_id is not None and (previous := found.previous) is not None:
        took_over = yield from may_follow(db, command, found, now)
        fingerprint = command.definition.fingerprint
        snapshot = yield from history_of(
            db, found.instance_id, command.job, fingerprint
        )
        latest = (previous.id, previous.attempt)
    return opened_by(
        command,
        instance_id=found.instance_id or 0,
        run=run,
        previous=latest,
        took_over=took_over,
        snapshot=snapshot,
        now=now,
    )
