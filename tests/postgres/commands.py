"""Commands for tests of one connection, of the owner that was registered first."""

from tests.storage.client import FACTS, definition, next_step, step_end
from triolet.storage.commands import Advance, Opened, OpenExecution, RegisterOwner
from triolet.storage.model.parameters import parameters_of

MINUTE = 60_000_000
REGISTER = RegisterOwner(FACTS, MINUTE)


def opening(day: str) -> OpenExecution:
    """Make the launch of an instance."""
    return OpenExecution(
        job="settlement",
        parameters=parameters_of({"day": day}),
        definition=definition(),
        owner_id=1,
        failure_id=7,
        first=next_step(),
    )


def finishing(opened: Opened, version: int = 1) -> Advance:
    """End the first step, which is expected to have that version, and start another."""
    assert opened.first is not None
    return Advance(
        execution_id=opened.execution_id,
        owner_id=1,
        finish=step_end(opened.first.step_id, version=version),
        start=next_step("report"),
    )
