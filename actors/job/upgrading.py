"""Registering that a changed definition continues an earlier one."""

from collections.abc import Mapping

from ...storage.commands.opening import Definition
from ...storage.commands.upgrading import RegisterUpgrade
from ..plan.compile import CompiledJob
from ..plan.manifest import read_manifest
from ..plan.upgrade import carried_nodes


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
