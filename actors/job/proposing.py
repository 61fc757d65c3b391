"""What is to be done about an execution that has not ended."""

from enum import Enum

from ...storage.commands import Unresolved
from ...storage.model.status import BatchStatus


class Proposal(Enum):
    """What mends an execution that has not ended."""

    LEAVE = "somebody works on it"
    WAIT = "its lease has to run out first"
    TAKE_OVER = "its owner is dead: the next launch takes it over"
    LAUNCH = "its lease has run out: the next launch takes it over"
    DECIDE = "an operator has to decide what became of it"


def propose(seen: Unresolved, alive: bool | None) -> Proposal:
    """Say what is to be done.

    Args:
        seen: The execution.
        alive: Whether its owner's process lives; None when that is not known.
    """
    if seen.execution.status is BatchStatus.UNKNOWN:
        return Proposal.DECIDE
    dead = alive is False
    if not dead and seen.lease_left > 0:
        return Proposal.LEAVE if alive else Proposal.WAIT
    if any(step.status is BatchStatus.UNKNOWN for step in seen.steps):
        return Proposal.DECIDE
    return Proposal.TAKE_OVER if dead else Proposal.LAUNCH
