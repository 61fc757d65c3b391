"""What runs now, as events tell it: what is left when the process ends at once."""

from collections.abc import Iterator
from typing import TypeAlias

from attrs import define, field, frozen

from ...storage.model.status import BatchStatus
from ..job.events import Event, EventKind
from ..plan.barring import fails_job, is_barred
from ..plan.compile import CompiledJob
from .formats import NEVER_AGAIN, never_again

Place: TypeAlias = tuple[str, str]
"""The name of a job and a node of it."""


@frozen
class Left:
    """What a process leaves that ends at once."""

    job: str
    execution_id: int | None


@define(eq=False)
class Underway:
    """Follows one launch."""

    job: CompiledJob
    execution_id: int | None = field(default=None, init=False)
    _once: frozenset[Place] = field(init=False)
    """What must not run again."""
    _running: dict[tuple[str, str, int | None], None] = field(factory=dict, init=False)
    """Job, node and row of every step that has begun and did not complete."""

    def __attrs_post_init__(self) -> None:
        self._once = frozenset(_once_only(self.job))

    def hear(self, event: Event) -> None:
        """Take in an event of the job, or of a child."""
        row = (event.job, event.node or "", event.step_id)
        match event.kind:
            case EventKind.JOB_STARTED if self.execution_id is None:
                # The first one: those of children follow.
                self.execution_id = event.execution_id
            case EventKind.STEP_STARTED:
                self._running[row] = None
            case EventKind.STEP_RESULT_COMMITTED if _is_completed(event):
                self._running.pop(row, None)

    @property
    def left(self) -> Left:
        """Name what is left."""
        return Left(self.job.plan.job, self.execution_id)

    @property
    def outlook(self) -> str:
        """Say what becomes of it when the process ends now."""
        # A signal may come while an event is taken in.
        running = [(job, node) for job, node, _ in [*self._running]]
        barred = [node for job, node in running if (job, node) in self._once]
        if not self.job.restartable:
            return f"job {self.job.plan.job} {NEVER_AGAIN.format('is')}"
        if barred:
            return never_again(barred)
        return "the next launch continues from the last commit"


def _is_completed(event: Event) -> bool:
    return event.status is BatchStatus.COMPLETED


def _once_only(job: CompiledJob) -> Iterator[Place]:
    """Give the nodes of a job and of its children that must not run again."""
    name = job.plan.job
    for key in job.plan.every:
        # Events call partitions by the node that they are of.
        if any(is_barred(job.plan, key, partition=one) for one in (False, True)):
            yield name, key
    for key, child in job.children.items():
        if fails_job(job.plan, key):
            if not child.restartable:
                yield name, key
            yield from _once_only(child)
