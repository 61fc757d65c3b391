"""What all engines of one attempt at an instance have in common."""

from attrs import frozen

from ...storage.model import digests
from .failures import FlowFailures
from .history import History
from .plan import DecisionNode, Plan


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

    def decider_input(
        self, node: DecisionNode, visit: int, preceding: bytes | None
    ) -> bytes:
        """Digest what a decider is asked about.

        Args:
            node: The decision.
            visit: Which visit of it.
            preceding: The digest of the step or split before, if there was one.
        """
        return digests.decider_input(
            self.plan.fingerprint,
            node.id,
            node.revision,
            node.input_version,
            self.instance_id,
            self.parameters,
            preceding,
            visit,
        )
