"""What a launch would do, without launching."""

from collections.abc import Generator

from attrs import evolve

from ...storage.commands import (
    AlreadyRunning,
    DefinitionDrift,
    IncompatibleDefinition,
    Opened,
)
from ...storage.commands.previewing import PreviewOpening
from ..kernel.liveness import is_alive
from ..plan.preview import Preview, preview_of
from .launch import Launch, opening_of, with_changes

Previewing = Generator[PreviewOpening, Opened, Preview]


def previewed(launch: Launch) -> Previewing:
    """Make a preview: yields questions to the store, is sent the answers, returns it.

    What refuses a question is thrown in; what would refuse the launch comes out, as
    the launch would raise it. An owner that is proved dead does not count; of one of
    which nothing is known, a launch would wait for the lease.
    """
    plan = launch.job.plan
    opening = opening_of(launch, 0, 1)
    try:
        try:
            opened = yield PreviewOpening(opening)
        except AlreadyRunning as running:
            if is_alive(running.owner) is not False:
                raise
            opened = yield PreviewOpening(evolve(opening, dead_owner=running.owner_id))
    except (IncompatibleDefinition, DefinitionDrift) as exc:
        raise with_changes(exc, plan) from None
    parameters = launch.parameters
    if opened.run is not None:
        parameters = parameters.with_run(opened.run)
    return preview_of(plan, opened, parameters.projection())
