"""What a runtime shows of its actors: a tree of values, made without waiting."""

from collections.abc import Iterator
from enum import StrEnum

from attrs import frozen


class ActorKind(StrEnum):
    """What an actor does."""

    RUNTIME = "runtime"
    STORAGE = "storage"
    HEARTBEAT = "heartbeat"
    STOP_WATCH = "stop watch"
    SERVING = "serving"
    JOB = "job"
    SPLIT = "split"
    BRANCH = "branch"
    PARTITION_MANAGER = "partition manager"
    PARTITION_WORKER = "partition worker"
    STEP = "step"


class Activity(StrEnum):
    """What an actor is about."""

    IDLE = "idle"
    RUNNING = "running"
    STOPPING = "stopping"


@frozen(kw_only=True)
class ActorState:
    """One actor and its children, as they are now."""

    kind: ActorKind
    name: str
    activity: Activity
    waiting: int = 0
    """Messages in its mailbox."""
    children: tuple["ActorState", ...] = ()

    def lines(self, indent: str = "") -> Iterator[str]:
        """Write the tree, an actor on each line."""
        waiting = f", {self.waiting} waiting" if self.waiting else ""
        yield f"{indent}{self.kind} {self.name}: {self.activity}{waiting}"
        for child in self.children:
            yield from child.lines(indent + "  ")

    def __str__(self) -> str:
        return "\n".join(self.lines())
