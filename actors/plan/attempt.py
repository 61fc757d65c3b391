"""What the engines of one attempt at an instance share."""

from attrs import frozen

from .failures import FlowFailures
from .history import History
from .plan import Plan


@frozen(kw_only=True)
class Attempt:
    """What all engines of one attempt at an instance have in common."""

    plan: Plan
    history: History
    failures: FlowFailures
    """Makes the failures of routing."""
    ids: tuple[int, int]
    """Of the execution and its owner."""
    instance_id: int
    parameters: bytes
    """The projection digest of the launch parameters."""
