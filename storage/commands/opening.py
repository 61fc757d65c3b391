"""Beginning an attempt: the instance, its history, and every reason to refuse."""

from datetime import UTC, datetime

from attrs import field, frozen

from ..model.errors import Rejection, error
from ..model.execution import Decision, StepExecution
from ..model.parameters import ParameterSet
from ..model.partition import PartitionExecution
from .command import Command
from .ownership import OwnerFacts
from .starting import NextStep, StepStarted


@frozen(kw_only=True)
class Definition:
    """A compiled definition as the store keeps it."""

    revision: str
    format: int
    fingerprint: bytes = field(repr=False)
    manifest: str = field(repr=False)


@frozen(kw_only=True)
class OpenExecution(Command["Opened"]):
    """Find or create the instance and begin a new attempt at it.

    What a dead owner left is taken over first: it becomes FAILED, or STOPPED when a
    stop was pending, or UNKNOWN when a step is, and then nothing begins. A stop speaks
    of one execution, and this command is only sent for somebody who asks for a launch,
    so a new attempt begins after a stopped one too. What takes over by itself sends a
    `Recover`, which begins nothing.
    """

    job: str
    parameters: ParameterSet
    definition: Definition
    owner_id: int
    failure_id: int
    """For the failure of rows that a takeover closes."""
    anew: bool = False
    """Make a new instance by the next free run number."""
    existing: bool = False
    """Continue an instance only; RunUnknown when there is none."""
    dead_owner: int | None = None
    """An owner that is proved dead, whose execution may be taken over at once."""
    first: NextStep | None = None
    """The entry step, started in the same transaction when the instance is new."""
    restartable: bool = True
    """False refuses every attempt but the first. What a dead owner left of that one is
    closed nevertheless, as by a takeover."""
    request_id: int | None = None
    """The launch request that it is for; LaunchLost when that is not the owner's."""

    @property
    def place(self) -> tuple[str, bytes]:
        """After commands that make no shared rows, by job and instance."""
        return self.job, self.parameters.instance_key(self.job)


@frozen
class Snapshot:
    """What an instance has behind it: all that a traversal needs to know."""

    steps: tuple[StepExecution, ...] = ()
    """The latest row of each node and visit."""
    starts: tuple[tuple[str, int, int], ...] = ()
    """(node, visit, number of rows ever created), sorted."""
    decisions: tuple[Decision, ...] = ()
    """Of deciders and joins, newest first."""
    partitions: tuple[PartitionExecution, ...] = ()
    """The latest plan of each node and visit that has one, by manager and ordinal."""
    since: int | None = None
    """When the first was made of the attempts that died one after the other, up to now;
    None when the latest one ended by itself."""
    steps_since: tuple[tuple[str, int, int], ...] = ()
    """(node, visit, when its first row was made) of steps that these attempts left open
    and that have not ended since, sorted."""

    def partitions_of(
        self, node: str, visit: int = 1
    ) -> tuple[PartitionExecution, ...]:
        """Give the latest plan of a node; empty when it has none."""
        key = node, visit
        return tuple(one for one in self.partitions if (one.node, one.visit) == key)


@frozen(kw_only=True)
class Opened:
    """A new attempt has begun and is STARTED, version 1."""

    instance_id: int
    execution_id: int
    attempt: int
    run: int | None
    at: int
    restart_of: int | None
    took_over: int | None
    """The execution of a dead owner that was closed in the same transaction."""
    snapshot: Snapshot
    first: StepStarted | None


@error
class RunUnknown(Rejection, LookupError):
    """The job has no such run with these parameters."""

    code = "run_unknown"
    job: str

    def __str__(self) -> str:
        """Say in one sentence what is wrong, where, and how to mend it."""
        return (
            f"job {self.job!r} has no such run with these parameters: 'triolet list' "
            "shows the runs"
        )


@error
class InstanceComplete(Rejection):
    """The instance has completed; it is not run twice."""

    code = "instance_complete"
    job: str
    execution_id: int
    ended_at: int

    def __str__(self) -> str:
        return (
            f"job {self.job!r} has completed with these parameters at "
            f"{_when(self.ended_at)} (execution {self.execution_id}); to run it anew "
            "use 'triolet run ... --new' (anew=True), or give it other identifying "
            "parameters"
        )


@error
class InstanceAbandoned(Rejection):
    """An operator has abandoned the instance; it cannot be restarted."""

    code = "instance_abandoned"
    job: str
    execution_id: int

    def __str__(self) -> str:
        return (
            f"job {self.job!r} was abandoned with these parameters (execution "
            f"{self.execution_id}); to run it anew use 'triolet run ... --new' "
            "(anew=True)"
        )


@error
class NotRestartable(Rejection):
    """The job may be attempted once for each instance, and it was."""

    code = "not_restartable"
    job: str
    execution_id: int

    def __str__(self) -> str:
        """Say in one sentence what is wrong, where, and how to mend it."""
        return (
            f"job {self.job!r} is not restartable, and execution {self.execution_id} did "
            "not complete: to run it anew with these parameters use "
            "'triolet run ... --new' (anew=True)"
        )


@error
class AlreadyRunning(Rejection):
    """Another owner works on this instance, or might."""

    code = "already_running"
    execution_id: int
    owner_id: int
    owner: OwnerFacts
    lease_left: int
    """Microseconds until the lease runs out, by the store's clock."""

    def __str__(self) -> str:
        who = f"process {self.owner.pid} on host {self.owner.host}"
        return (
            f"this job instance is already running: execution {self.execution_id} is "
            f"owned by {who}"
        )


@error
class OutcomeUnresolved(Rejection):
    """What an earlier attempt did is not known; an operator has to decide."""

    code = "outcome_unresolved"
    execution_id: int

    def __str__(self) -> str:
        return (
            f"the outcome of execution {self.execution_id} is UNKNOWN and must be "
            "resolved before this job instance can run again: find out what it did, "
            f"then use 'triolet recover {self.execution_id} --reason WHY' with "
            "--mark-failed or --abandon"
        )


@error
class DefinitionDrift(Rejection):
    """A revision label was used for two different definitions."""

    code = "definition_drift"
    job: str
    revision: str
    stored: str = field(repr=False)
    """The manifest that is registered under the label."""
    changes: tuple[str, ...] = ()

    def __str__(self) -> str:
        what = "; ".join(self.changes) or "it differs"
        return (
            f"job {self.job!r} is already registered with revision {self.revision!r} "
            f"and another definition: {what}. Give the changed one a new revision"
        )


@error
class IncompatibleDefinition(Rejection):
    """The definition differs from the one that the latest attempt ran."""

    code = "definition_incompatible"
    job: str
    execution_id: int
    stored: str = field(repr=False)
    """The manifest that the latest attempt ran."""
    changes: tuple[str, ...] = ()

    def __str__(self) -> str:
        what = "; ".join(self.changes) or "it differs"
        return (
            f"the definition of job {self.job!r} has changed since execution "
            f"{self.execution_id}, which is to be continued: {what}. Restore it, let "
            "the changed one continue it with 'triolet upgrade', or run anew with "
            "'triolet run ... --new' (anew=True)"
        )


def _when(micros: int) -> str:
    return datetime.fromtimestamp(micros / 1e6, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
