"""Registering that a changed definition continues an earlier one."""

from collections.abc import Mapping

from attrs import frozen

from ...storage.commands.opening import Definition
from ...storage.commands.upgrading import RegisterUpgrade
from ..plan.compile import CompiledJob
from ..plan.manifest import read_manifest
from ..plan.upgrade import begun_new, carried_nodes, left_behind


@frozen(kw_only=True)
class Upgraded:
    """What an upgrade carries over, and what it does not."""

    job: str
    revision: str
    earlier: str
    """The revision that is continued."""
    continued: Mapping[str, str]
    """Earlier node to the one that continues it."""
    left_behind: tuple[str, ...]
    """Earlier nodes that nothing continues: whatever they did is forgotten."""
    new: tuple[str, ...]
    """Nodes that continue nothing: they run, whatever was done under another name."""
    registered: bool
    """False: it was only previewed."""
    unchanged: bool = False
    """Exactly this upgrade had been registered before, so nothing was written."""


def upgrade_of(
    job: CompiledJob, earlier: Definition, renamed: Mapping[str, str], key: str | None
) -> RegisterUpgrade:
    """Make the command.

    Args:
        job: The changed job.
        earlier: The definition that earlier attempts ran.
        renamed: Node of *earlier* to the node that continues it; nodes that keep their
            id and kind need not be named.
        key: Names the edge; None makes a name of both revisions.

    Raises:
        InvalidValue: See `carried_nodes`; or the definitions are the same.
    """
    plan = job.plan
    return RegisterUpgrade(
        job=plan.job,
        key=key or f"{earlier.revision}-{job.revision}"[:128],
        source=earlier.fingerprint,
        target=Definition(
            revision=job.revision,
            format=plan.format,
            fingerprint=plan.fingerprint,
            manifest=plan.manifest,
        ),
        steps=carried_nodes(read_manifest(earlier.manifest), plan, renamed),
    )


def upgraded(
    job: CompiledJob, earlier: Definition, command: RegisterUpgrade
) -> Upgraded:
    """Say what the command does, before it is carried out."""
    return Upgraded(
        job=job.plan.job,
        revision=job.revision,
        earlier=earlier.revision,
        continued=dict(command.steps),
        left_behind=left_behind(read_manifest(earlier.manifest), command.steps),
        new=begun_new(job.plan, command.steps),
        registered=False,
    )
