"""What a traversal asks for, and what came of it: the values between engine and actor."""

from typing import TypeAlias

from attrs import define, frozen

from ...storage.commands import Advance, EnlistedWrite
from ...storage.model.execution import NO_COUNTS, Counts, Failure
from ...storage.model.status import BatchStatus
from .plan import DecisionNode, StepNode


@define
class OpenStep:
    """The row of the step that runs now, as it stands in the store.

    Whoever runs the step keeps it true after every commit, so that the engine can
    close the row at any moment.
    """

    node: StepNode
    step_id: int
    attempt: int
    """Which start of this node in the instance it is, from 1."""
    status: BatchStatus
    version: int
    counts: Counts = NO_COUNTS
    checkpoint: str | None = None
    context: str | None = None


@frozen
class Preceding:
    """The step that a decider looks back on."""

    node: str
    step_id: int
    status: BatchStatus
    exit_code: str
    counts: Counts
    context: str | None
    digest: bytes


@frozen(kw_only=True)
class StepResult:
    """What came of running a step."""

    status: BatchStatus
    """COMPLETED, FAILED, STOPPED or UNKNOWN."""
    exit_code: str
    failure: Failure | None = None
    context: str | None = None
    """The state to be committed; None keeps what the row has."""
    write: EnlistedWrite | None = None


@frozen(kw_only=True)
class StepReport:
    """A step as this attempt saw it: run, or reused from an earlier attempt."""

    node: str
    step_id: int
    status: BatchStatus
    exit_code: str
    counts: Counts
    failure: Failure | None
    reused: bool


@frozen
class RunStep:
    """Run a step whose row is durable."""

    step: OpenStep


@frozen
class Decide:
    """Ask a decider; everything that led to it is durable."""

    node: DecisionNode
    preceding: Preceding | None


@frozen
class Commit:
    """Have the command carried out and feed back its reply."""

    command: Advance


@frozen
class Finished:
    """The job's end is durable."""

    status: BatchStatus
    exit_code: str
    failure: Failure | None
    counts: Counts


Action: TypeAlias = RunStep | Decide | Commit | Finished
