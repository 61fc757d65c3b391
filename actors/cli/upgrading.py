"""``triolet upgrade``: letting a changed job continue what an earlier one began."""

from collections.abc import Sequence
from uuid import UUID

from ...storage.backend import run
from ...storage.commands.upgrading import FindDefinition
from ...storage.model.errors import InvalidValue
from ...storage.stores import StoreOptions, open_store
from ..job.upgrading import upgrade_of
from ..plan.compile import compile_job
from .answers import Answer
from .target import load_job

BATCH = UUID(int=0)


def upgrade(target: str, url: str, revision: str, renamed: Sequence[str]) -> Answer:
    """Register an upgrade and say what is carried over.

    Raises:
        InvalidValue: A pair is not OLD=NEW, or names what is not there.
        DefinitionUnknown: The job was never launched under that revision.
        UpgradeConflict: Another upgrade between the two is registered.
    """
    pairs = dict(map(_pair, renamed))
    job = compile_job(load_job(target))
    backend = open_store(url, StoreOptions(create=False))
    try:
        earlier = run(backend, BATCH, FindDefinition(job.plan.job, revision))
        command = upgrade_of(job, earlier, pairs, None)
        run(backend, BATCH, command)
    finally:
        backend.close()
    left = [old for old, new in command.steps if old != new]
    names = ", ".join(f"{old} as {new}" for old, new in command.steps if old != new)
    kept = len(command.steps) - len(left)
    text = (
        f"job {job.plan.job} of revision {job.revision} continues revision {revision}: "
        f"{kept} node{'' if kept == 1 else 's'} as before"
        + (f", {names}" if names else "")
    )
    return Answer(dict(command.steps), [text])


def _pair(text: str) -> tuple[str, str]:
    old, equals, new = text.partition("=")
    if not (old and equals and new):
        raise InvalidValue(f"the pair {text!r}", "must be OLD=NEW")
    return old, new
