"""What a runtime tells its event sink, and the harness that keeps sinks harmless.

An event follows the commit that it names; the durable state stays the only authority.
A sink that raises is logged and changes nothing.
"""

import logging
from collections.abc import Callable
from enum import StrEnum
from typing import TypeAlias

from attrs import evolve, field, frozen

from ...storage.model.execution import Counts, Target
from ...storage.model.status import BatchStatus

log = logging.getLogger("triolet.events")

EVENT_SCHEMA = 1


class EventKind(StrEnum):
    """What happened."""

    LAUNCH_WAITING = "launch.waiting"
    JOB_STARTED = "job.started"
    JOB_ENDED = "job.ended"
    STEP_STARTED = "step.started"
    STEP_PROGRESSED = "step.progressed"
    CHUNK_COMMITTED = "chunk.committed"
    STEP_RESULT_COMMITTED = "flow.step_result_committed"
    DECISION_COMMITTED = "flow.decision_committed"
    COMPLETED_STEP_REUSED = "flow.completed_step_reused"
    PARTITIONS_PLANNED = "flow.partitions_planned"
    """The plan of a partitioned step is durable, made now or in an earlier attempt."""
    START_LIMIT_EXCEEDED = "step.start_limit_exceeded"
    STEP_TIMED_OUT = "step.timed_out"
    """A step's time is over; its result follows, when its work has ended."""
    JOB_TIMED_OUT = "job.timed_out"
    STOP_REQUESTED = "job.stop_requested"
    STOP_WAITING = "job.stop_waiting"
    LOOP_BLOCKED = "step.loop_blocked"
    STORE_RETRIED = "store.retried"


@frozen(kw_only=True)
class Event:
    """One event with its correlation; what does not apply is None."""

    kind: EventKind
    job: str = ""
    instance_id: int | None = None
    execution_id: int | None = None
    attempt: int | None = None
    node: str | None = None
    visit: int | None = None
    """Which visit of the node, from 1; later ones come in loops."""
    partition: str | None = None
    """Key of the partition that a worker of the node does."""
    total: int | None = None
    """How many partitions were planned."""
    completed: int | None = None
    """How many of them earlier attempts have completed."""
    step_id: int | None = None
    target: Target | None = None
    status: BatchStatus | None = None
    exit_code: str | None = None
    counts: Counts | None = None
    """Of the step, over all attempts."""
    fraction: float | None = None
    """Of the step's input that is done, 0 to 1; None where nobody knows."""
    seconds: float | None = None
    """How long a launch will wait at most, the event loop was blocked, or the time was
    that is over."""
    message: str | None = None
    at: int | None = None
    """Store clock, microseconds since 1970; None for events that no commit precedes."""
    schema: int = EVENT_SCHEMA


EventSink: TypeAlias = Callable[[Event], None]
"""Called on the event loop for every event; it should return at once."""


@frozen
class Announcer:
    """Tells a sink what happens in one execution; whatever it raises is only logged."""

    sink: EventSink | None
    job: str
    instance_id: int | None = None
    execution_id: int | None = None
    attempt: int | None = None
    node: str | None = None
    """Of the manager, when all that is told is of one partition's worker."""
    partition: str | None = None
    """Key of that partition."""
    active: bool = field(init=False)
    """Whether anybody listens: without, events need not be made."""

    @active.default
    def _listened_to(self) -> bool:
        return self.sink is not None

    def tell(self, event: Event) -> None:
        """Hand an event to the sink, its correlation filled in."""
        if self.sink is None:
            return
        if self.partition is not None:
            event = evolve(event, node=self.node, partition=self.partition)
        try:
            self.sink(
                evolve(
                    event,
                    job=self.job,
                    instance_id=self.instance_id,
                    execution_id=self.execution_id,
                    attempt=self.attempt,
                )
            )
        except (Exception, SystemExit):
            log.exception("the event sink raised on %s", event.kind)
