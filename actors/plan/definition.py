"""What users write: a job as plain, frozen data.

The constructors only record; ``compile_job`` checks everything and reports every
mistake at once. Nothing here runs, waits or knows the store.
"""

from collections.abc import Iterable, Mapping
from enum import Enum
from typing import Final, TypeAlias

from attrs import field, frozen

from ...storage.model.execution import End, Terminal
from ...storage.model.execution import Stop as Stop
from ...storage.model.parameters import ParameterValue
from .branching import STATUS_AND_COUNTS as STATUS_AND_COUNTS
from .branching import FailurePolicy as FailurePolicy
from .branching import PartitionedStep as PartitionedStep
from .branching import Split as Split
from .converters import list_of, targets
from .steps import FILTERED as FILTERED
from .steps import Chunk as Chunk
from .steps import Component as Component
from .steps import Exit as Exit
from .steps import Filtered as Filtered
from .steps import Function as Function
from .steps import InFlight as InFlight
from .steps import OnStop as OnStop
from .steps import Step as Step
from .steps import StepListener as StepListener

COMPLETE: Final = Terminal.COMPLETE
"""Target of a transition: the job ends COMPLETED."""
FAIL: Final = Terminal.FAIL
"""Target of a transition: the job ends FAILED."""
STOP: Final = Terminal.STOP
"""Target of a transition: the job ends STOPPED and may be launched again.

What led here is asked or, if it did not complete, run again; see `Stop`."""


class Required(Enum):
    """The default of a parameter that has none."""

    REQUIRED = "required"

    def __repr__(self) -> str:
        return self.name


REQUIRED: Final = Required.REQUIRED


@frozen
class Parameter:
    """The declaration of one launch parameter.

    Args:
        name: At most 128 bytes; names that begin with ``triolet.`` are reserved.
        type: ``str``, ``int`` (64 bits, signed or unsigned) or ``bool``.
        default: Taken when the launch does not give the parameter. Without a default
            the parameter must be given.
        identifying: Whether it tells one instance of the job from another.
        secret: Its value is never stored or shown; a restart must give it again.
    """

    name: str
    type: type[str | int | bool]
    default: ParameterValue | Required = field(
        default=REQUIRED, kw_only=True, repr=False
    )
    identifying: bool = field(default=True, kw_only=True)
    secret: bool = field(default=False, kw_only=True)


@frozen
class Decision:
    """A node that chooses the way on and does nothing else.

    A decision already followed by work is durable: a restart replays the answer.

    Args:
        id: Names the node; at most 128 bytes.
        decider: A plain or async function, called as ``decider(ctx)`` with its input,
            a `DeciderContext`; it returns an ``Exit`` or an exit code. It must depend
            on nothing else.
        then: Maps exit patterns to targets, as for a step, but without any default.
        revision: Of the decider; it changes with the meaning of the code.
        input_version: Of the input that the decider understands, 1 to 2^32 - 1.
        visit_limit: As for a ``Step``.
    """

    id: str
    decider: Function
    then: Mapping[str, str | End] = field(kw_only=True, converter=targets, hash=False)
    revision: str = field(default="1", kw_only=True)
    input_version: int = field(default=1, kw_only=True)
    visit_limit: int | None = field(default=None, kw_only=True)


Node: TypeAlias = Step | Decision | Split | PartitionedStep


def _nodes(every: Iterable[Node]) -> tuple[Node, ...]:
    return list_of(every, "the steps of a job")


@frozen
class JobListener:
    """User code called before and after an attempt at a job.

    A failure of ``before`` fails the job without running any node; a failure of
    ``after`` fails a job that would have been COMPLETED, and nothing else.
    Before-listeners are called in the order of registration, until one fails;
    after-listeners in the reverse order, all of them, whenever the attempt comes to an
    end by itself: not when the scope around the launch is cancelled, or the store
    fails. What they return is ignored. A stop cancels a before-listener, and waits for
    after-listeners. They are called again by every further attempt.

    Args:
        name: Names the listener in reports.
        before: Called as ``before(ctx)`` with a `JobContext`, when the execution has
            begun and none of its nodes.
        after: Called as ``after(ctx, outcome)`` with the same and a `JobOutcome`, when
            the results of all steps are durable and the job's end is not.
        revision: A label of the code for people. A job with other listeners is not
            another definition.
    """

    name: str
    before: Function | None = field(default=None, kw_only=True)
    after: Function | None = field(default=None, kw_only=True)
    revision: str = field(default="1", kw_only=True)


def _listeners(every: Iterable[JobListener]) -> tuple[JobListener, ...]:
    return list_of(every, "the listeners of a job")


def _parameters(every: Iterable[Parameter]) -> tuple[Parameter, ...]:
    return list_of(every, "the parameters of a job")


@frozen
class Job:
    """A batch job: a name and its nodes, which follow each other in their order.

    Args:
        name: Names the job in the store; at most 128 bytes.
        steps: ``Step``, ``JobStep``, ``Decision``, ``Split`` and ``PartitionedStep`` nodes;
            the first one is the entry, which may not be a split.
        revision: A label for this definition. A label never names two definitions;
            None derives it from the fingerprint, so that it cannot drift.
        parameters: When given, a launch accepts these parameters and no others.
        listeners: At most 32 ``JobListener``.
        restartable: False refuses every launch after the first of an instance that did
            not complete, a launch after a crash included; only a new instance can then
            be run. Not part of the definition: what the launch is given counts.
        timeout: Seconds, at most 1e9, for the nodes and before-listeners. Then what
            runs is brought to an end as by a stop, nothing more is begun, and the job
            is FAILED. As for a step, what passed before a crash counts, and it is not
            part of the definition. None: as long as it takes.
    """

    name: str
    steps: tuple[Node, ...] = field(converter=_nodes)
    revision: str | None = field(default=None, kw_only=True)
    parameters: tuple[Parameter, ...] = field(
        default=(), kw_only=True, converter=_parameters
    )
    listeners: tuple[JobListener, ...] = field(
        default=(), kw_only=True, converter=_listeners
    )
    restartable: bool = field(default=True, kw_only=True)
    timeout: float | None = field(default=None, kw_only=True)
