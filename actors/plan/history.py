"""What an instance has behind it, as a traversal sees it: rows, starts, answers.

Begins as the snapshot that opened the attempt and is kept up with every result, so that
nothing has to be read back from the store.
"""

from typing import TypeAlias

from attrs import define

from ...storage.commands import Snapshot
from ...storage.model import digests
from ...storage.model.execution import (
    NO_COUNTS,
    Counts,
    DecisionRef,
    StepExecution,
    Stop,
    Terminal,
)
from ...storage.model.partition import PartitionExecution, is_worker
from .actions import LatestRow, OpenStep, StepResult

Visit: TypeAlias = tuple[str, int]
"""A node path, and which visit of the node, from 1."""
Answer: TypeAlias = tuple[str, DecisionRef]
"""The exit code of a decision or a join, and where it is recorded."""

VERSIONS_PER_END = 2
"""A step's end stands for two mutations: its exit code, then its status."""


@define
class Starts:
    """How often each visit was started, and since when it is under way."""

    _counts: dict[Visit, int]
    _since: dict[Visit, int]

    def count(self, node: str, visit: int) -> int:
        """Count how often a visit was started in the instance."""
        return self._counts.get((node, visit), 0)

    def add(self, node: str, visit: int) -> int:
        """Count one more start; give which one it is."""
        count = self.count(node, visit) + 1
        if visit > 1:
            # Nobody asks for the starts of an earlier visit again.
            self._counts.pop((node, visit - 1), None)
        self._counts[node, visit] = count
        return count

    def spent(self, node: str, visit: int, at: int) -> int:
        """Tell how long a visit was under way at an instant, over deaths of its owner."""
        if not self._since:
            return 0
        return max(0, at - self._since.get((node, visit), at))


class History:
    """The instance's past and this attempt's results."""

    def __init__(self, fingerprint: bytes, snapshot: Snapshot) -> None:
        self._fingerprint = fingerprint
        self._digests: dict[int, bytes] = {}
        self._latest = {
            (step.node, step.visit): self._recorded(step) for step in snapshot.steps
        }
        self._behind = NO_COUNTS
        """Of visits that this attempt has closed, the last one of each node aside."""
        self._last = {row.node: row for row in self._latest.values()}
        self._plans: dict[Visit, list[PartitionExecution]] = {}
        for one in snapshot.partitions:
            self._plans.setdefault((one.node, one.visit), []).append(one)
        self.begun = Starts(
            {(node, visit): count for node, visit, count in snapshot.starts},
            {(node, visit): at for node, visit, at in snapshot.steps_since},
        )
        self._answers: dict[tuple[Visit, bytes], Answer] = {}
        self._stops: dict[Visit, Answer] = {}
        for made in snapshot.decisions:
            # A stop is not for ever: after one the decider is asked again.
            if made.fingerprint == fingerprint and made.target is not Terminal.STOP:
                source = made.source, made.visit
                answer = (made.outcome, DecisionRef(made.execution_id, made.sequence))
                self._answers.setdefault((source, made.digest), answer)
                if isinstance(made.target, Stop):
                    self._stops.setdefault(source, answer)

    def _recorded(self, step: StepExecution) -> LatestRow:
        made = step.decision
        ref, resumed = None, False
        if made is not None and made.fingerprint == self._fingerprint:
            ref = DecisionRef(made.execution_id, made.sequence)
            resumed = isinstance(made.target, Stop)
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
            resumed,
            step.visit,
        )

    def latest(self, node: str, visit: int) -> LatestRow | None:
        """Give the latest row of a visit, if it was ever started."""
        return self._latest.get((node, visit))

    def last(self, node: str) -> LatestRow | None:
        """Give the row of the visit that this attempt has come by last.

        That of an earlier attempt where this one has not come by the node.
        """
        return self._last.get(node)

    def pass_by(self, row: LatestRow) -> None:
        """Note that this attempt comes by a row that it reuses."""
        self._last[row.node] = row

    def begin(self, node: str, visit: int) -> None:
        """Note that a visit begins: what its node left last is the visit before.

        Not what an earlier attempt at this visit, or at later ones, has left.
        """
        before = self._latest.get((node, visit - 1)) if visit > 1 else None
        if before is not None:
            self._last[node] = before
        else:
            self._last.pop(node, None)

    def plan(self, node: str, visit: int) -> tuple[PartitionExecution, ...]:
        """Give the latest plan of a partitioned step; empty when it has none."""
        return tuple(self._plans.get((node, visit), ()))

    def answer(self, node: str, visit: int, digest: bytes | None) -> Answer | None:
        """Find an earlier answer of a decision or a join.

        One that has stopped an attempt says where to go on, whatever the input would be
        now: steps that run again in every attempt do not have the question asked anew.

        Args:
            node: Id of the decision or join.
            visit: Which visit of it.
            digest: Of its input; None when there is none yet.
        """
        source = node, visit
        known = None if digest is None else self._answers.get((source, digest))
        return known or self._stops.get(source)

    def close(self, step: OpenStep, result: StepResult) -> LatestRow:
        """Take in that a row is being closed; give it as it will be."""
        node, visit = step.node.id, step.visit
        if visit > 1:
            before = self._latest.pop((node, visit - 1), None)
            if before is not None and not is_worker(node):
                self._behind += before.counts
        row = self._latest[node, visit] = self._last[node] = LatestRow(
            node,
            step.step_id,
            step.version + VERSIONS_PER_END,
            result.status,
            result.exit_code,
            step.counts,
            step.checkpoint,
            result.context or step.context,
            visit=visit,
        )
        return row

    def total(self) -> Counts:
        """Sum the counts of the latest rows of all visits; a manager's hold its workers'."""
        counts = [
            latest.counts
            for (node, _), latest in self._latest.items()
            if not is_worker(node)
        ]
        worked = [one for one in counts if one is not NO_COUNTS and one != NO_COUNTS]
        return sum(worked, self._behind)

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
