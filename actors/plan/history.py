"""What an instance has behind it, as a traversal sees it: rows, starts, answers.

Begins as the snapshot that opened the attempt and is kept up with every result, so that
nothing has to be read back from the store.
"""

from ...storage.commands import Snapshot
from ...storage.model import digests
from ...storage.model.execution import (
    NO_COUNTS,
    Counts,
    DecisionRef,
    StepExecution,
    Terminal,
)
from ...storage.model.partition import PartitionExecution, is_worker
from .actions import LatestRow, OpenStep, StepResult

VERSIONS_PER_END = 2
"""A step's end stands for two mutations: its exit code, then its status."""


class History:
    """The instance's past and this attempt's results."""

    def __init__(self, fingerprint: bytes, snapshot: Snapshot) -> None:
        self._fingerprint = fingerprint
        self._digests: dict[int, bytes] = {}
        self._latest = {step.node: self._recorded(step) for step in snapshot.steps}
        self._plans: dict[str, list[PartitionExecution]] = {}
        for partition in snapshot.partitions:
            self._plans.setdefault(partition.node, []).append(partition)
        self._starts = {node: count for node, _, count in snapshot.starts}
        self._since = {node: since for node, _, since in snapshot.steps_since}
        self._answers: dict[tuple[str, bytes], tuple[str, DecisionRef]] = {}
        for made in snapshot.decisions:
            # A stop is not for ever: after one the decider is asked again.
            if made.fingerprint == fingerprint and made.target is not Terminal.STOP:
                answer = (made.outcome, DecisionRef(made.execution_id, made.sequence))
                self._answers.setdefault((made.source, made.digest), answer)

    def _recorded(self, step: StepExecution) -> LatestRow:
        made = step.decision
        ref = None
        if made is not None and made.fingerprint == self._fingerprint:
            ref = DecisionRef(made.execution_id, made.sequence)
            self._digests[step.id] = made.digest
        return LatestRow(
            step.node,
            step.id,
            step.version,
            step.status,
            step.exit_code,
            step.counts,
            step.checkpoint,
            step.context,
            ref,
        )

    def latest(self, node: str) -> LatestRow | None:
        """Give the latest row of *node*, if it was ever started."""
        return self._latest.get(node)

    def plan(self, node: str) -> tuple[PartitionExecution, ...]:
        """Give the latest plan of a partitioned step; empty when it has none."""
        return tuple(self._plans.get(node, ()))

    def starts(self, node: str) -> int:
        """Count how often *node* was started in the instance."""
        return self._starts.get(node, 0)

    def count_start(self, node: str) -> int:
        """Count one more start; give which one it is."""
        count = self._starts[node] = self.starts(node) + 1
        return count

    def spent(self, node: str, at: int) -> int:
        """Tell how long *node* was under way at an instant, over deaths of its owner."""
        return max(0, at - self._since.get(node, at))

    def answer(self, node: str, digest: bytes) -> tuple[str, DecisionRef] | None:
        """Find a decider's earlier answer to the same input."""
        return self._answers.get((node, digest))

    def close(self, step: OpenStep, result: StepResult) -> LatestRow:
        """Take in that a row is being closed; give it as it will be."""
        row = self._latest[step.node.id] = LatestRow(
            step.node.id,
            step.step_id,
            step.version + VERSIONS_PER_END,
            result.status,
            result.exit_code,
            step.counts,
            step.checkpoint,
            result.context or step.context,
        )
        return row

    def total(self) -> Counts:
        """Sum the counts of the latest rows of all nodes; a manager's hold its workers'."""
        counts = [
            latest.counts
            for node, latest in self._latest.items()
            if not is_worker(node)
        ]
        worked = [one for one in counts if one is not NO_COUNTS and one != NO_COUNTS]
        return sum(worked, NO_COUNTS)

    def digest(self, row: LatestRow) -> bytes:
        """Digest a finished row, as input of what is decided upon it."""
        known = self._digests.get(row.step_id)
        return known or digests.step_input(
            self._fingerprint,
            row.node,
            row.step_id,
            row.version,
            row.status,
            row.exit_code,
            row.counts,
            row.context,
        )
