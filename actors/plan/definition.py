"""What users write: a job as plain, frozen data.

The constructors only record; ``compile_job`` checks everything and reports every
mistake at once. Nothing here runs, waits or knows the store.
"""

from collections.abc import Callable, Iterable, Mapping
from enum import Enum, StrEnum
from typing import Any, Final, TypeAlias, TypeVar

from attrs import field, frozen

from ...storage.model.errors import InvalidValue
from ...storage.model.execution import Terminal
from ...storage.model.names import NameKind, check_name
from ...storage.model.parameters import ParameterValue

T = TypeVar("T")

Function: TypeAlias = Callable[..., Any]
"""User code, plain or async; what it is called with depends on where it stands."""
Component: TypeAlias = Any
"""A user's reader or writer object; its methods are checked when compiling."""

COMPLETE: Final = Terminal.COMPLETE
"""Target of a transition: the job ends COMPLETED."""
FAIL: Final = Terminal.FAIL
"""Target of a transition: the job ends FAILED."""
STOP: Final = Terminal.STOP
"""Target of a transition: the job ends STOPPED and may be launched again."""


class Required(Enum):
    """The default of a parameter that has none."""

    REQUIRED = "required"

    def __repr__(self) -> str:
        return self.name


class Filtered(Enum):
    """What a processor returns to drop an item."""

    FILTERED = "filtered"

    def __repr__(self) -> str:
        return self.name


REQUIRED: Final = Required.REQUIRED
FILTERED: Final = Filtered.FILTERED


class OnStop(StrEnum):
    """What a stop does to a running tasklet."""

    CANCEL = "cancel"
    """Its cancel scope is cancelled at once; a plain function is waited for."""
    COOPERATE = "cooperate"
    """``ctx.stop`` is set; it is cancelled only when its grace has passed."""


class InFlight(StrEnum):
    """What a stop does to the chunk that is being worked on."""

    FINISH_CHUNK = "finish_chunk"
    """It is finished and committed; it is cancelled only when the grace has passed."""
    ROLLBACK_CHUNK = "rollback_chunk"
    """It is rolled back at once; a restart reads its items again."""


def _on_stop(word: str) -> OnStop | str:
    return OnStop(word) if word in list(OnStop) else word


def _in_flight(word: str) -> InFlight | str:
    return InFlight(word) if word in list(InFlight) else word


def _every(values: Iterable[T], what: str) -> tuple[T, ...]:
    given: object = values
    if isinstance(given, str) or not isinstance(given, Iterable):
        raise InvalidValue(what, f"must be a list, not {type(given).__name__}")
    return tuple(values)


def _targets(then: Mapping[str, str | Terminal]) -> dict[str, str | Terminal]:
    given: object = then
    if not isinstance(given, Mapping):
        raise InvalidValue("then", f"must be a dict, not {type(given).__name__}")
    return dict(then)


def _targets_if_any(
    then: Mapping[str, str | Terminal] | None,
) -> dict[str, str | Terminal] | None:
    return None if then is None else _targets(then)


@frozen
class Exit:
    """What a tasklet, an after-step listener or a decider returns to route the job.

    Args:
        code: At most 64 bytes of UTF-8; matched by the patterns of ``then``.

    Raises:
        InvalidName: When *code* breaks the rules for exit codes.
    """

    code: str

    def __attrs_post_init__(self) -> None:
        check_name(self.code, NameKind.EXIT_CODE)


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
class StepListener:
    """User code called before and after a step, in the step's own life.

    A failure of ``before`` fails the step without running it; a failure of ``after``
    fails a step that had not failed. Before-listeners are called in the order of
    registration, after-listeners in the reverse order, all of them. When the scope
    around the launch is cancelled, no after-listener is called.

    Args:
        name: Names the listener in reports.
        before: Called as ``before(ctx)`` with the step's `StepContext`, before its
            work.
        after: Called as ``after(ctx, outcome)`` with the same and a `StepOutcome`,
            which has ``status``, ``exit_code`` and ``message``; it may return an
            ``Exit`` to replace the exit code.
        revision: Changes with the meaning of the code; part of the fingerprint.
    """

    name: str
    before: Function | None = field(default=None, kw_only=True)
    after: Function | None = field(default=None, kw_only=True)
    revision: str = field(default="1", kw_only=True)


def _listeners(every: Iterable[StepListener]) -> tuple[StepListener, ...]:
    return _every(every, "listeners")


@frozen
class Chunk:
    """Work that reads, processes and writes items, committed ``size`` at a time.

    Args:
        reader: Has ``open``, ``read``, ``state`` and ``close``; its state is the
            checkpoint that a restart continues from.
        writer: Has ``open``, ``write``, ``close`` and ``delivery``. A writer whose
            delivery is atomic commits its rows together with the checkpoint.
        processor: A plain or async function of one item; it returns what is written,
            or ``FILTERED`` to drop the item. None: items are written as they are.
        size: Items per commit, 1 to 2^32 - 1.
        in_flight: ``"finish_chunk"`` or ``"rollback_chunk"``: what a stop does to the
            chunk that is being worked on.
        reader_revision: Like the other three revisions, it changes with the meaning
            of the component; a changed revision is a changed definition.
        writer_revision: Of the writer.
        processor_revision: Of the processor.
        checkpoint_revision: Of the rule when to commit.
    """

    reader: Component
    writer: Component
    processor: Function | None = None
    size: int = field(default=1000, kw_only=True)
    in_flight: InFlight | str = field(
        default=InFlight.FINISH_CHUNK, kw_only=True, converter=_in_flight
    )
    reader_revision: str = field(default="1", kw_only=True)
    writer_revision: str = field(default="1", kw_only=True)
    processor_revision: str = field(default="1", kw_only=True)
    checkpoint_revision: str = field(default="1", kw_only=True)


@frozen
class Step:
    """A node that works.

    Without ``then`` a step that fails ends the job FAILED, and every other exit code
    leads to the next node, from the last node to COMPLETE. A given ``then`` replaces
    the second rule as a whole; the first stays unless ``then`` has the key FAILED.

    Args:
        id: Names the node in ``then``, in reports and for restarts; at most 128 bytes.
        work: A tasklet (``async def f(ctx)``, or ``def f(ctx)`` for a thread; it is
            given a `StepContext`, and returns None or an ``Exit``) or a ``Chunk``.
        name: A label for people; the id unless given.
        then: Maps exit patterns to a node id, COMPLETE, FAIL or STOP. In a pattern
            ``*`` is any text and ``?`` one character; the more specific pattern wins.
        start_limit: How often the step may be started within one instance of the job,
            1 to 2^32 - 1. None: as often as needed.
        allow_start_if_complete: Whether a restart runs the step again although it had
            completed.
        listeners: At most 32 ``StepListener``.
        revision: Of the tasklet; it changes with the meaning of the code. A chunk
            has revisions of its own.
        on_stop: ``"cancel"`` or ``"cooperate"``: what a stop does to the tasklet.
        grace: Seconds that a stop leaves to a cooperating tasklet, or to the chunk in
            flight, before it is cancelled. A plain function runs in a thread, which
            cannot be cancelled: it is waited for until it returns.
        write: A plain function that is called as ``write(cursor, ctx)`` when the
            tasklet has returned, in the transaction that commits its result: what it
            writes with the `Cursor` is durable together with the result. ``ctx`` is
            the tasklet's own. It must not commit, and not keep the cursor.
    """

    id: str
    work: Function | Chunk
    name: str | None = field(default=None, kw_only=True)
    then: Mapping[str, str | Terminal] | None = field(
        default=None, kw_only=True, converter=_targets_if_any, hash=False
    )
    start_limit: int | None = field(default=None, kw_only=True)
    allow_start_if_complete: bool = field(default=False, kw_only=True)
    listeners: tuple[StepListener, ...] = field(
        default=(), kw_only=True, converter=_listeners
    )
    revision: str = field(default="1", kw_only=True)
    on_stop: OnStop | str = field(
        default=OnStop.CANCEL, kw_only=True, converter=_on_stop
    )
    grace: float = field(default=30.0, kw_only=True)
    write: Function | None = field(default=None, kw_only=True)


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
    """

    id: str
    decider: Function
    then: Mapping[str, str | Terminal] = field(
        kw_only=True, converter=_targets, hash=False
    )
    revision: str = field(default="1", kw_only=True)
    input_version: int = field(default=1, kw_only=True)


Node: TypeAlias = Step | Decision


def _nodes(every: Iterable[Node]) -> tuple[Node, ...]:
    return _every(every, "the steps of a job")


def _parameters(every: Iterable[Parameter]) -> tuple[Parameter, ...]:
    return _every(every, "the parameters of a job")


@frozen
class Job:
    """A batch job: a name and its nodes, which follow each other in their order.

    Args:
        name: Names the job in the store; at most 128 bytes.
        steps: ``Step`` and ``Decision`` nodes; the first one is the entry.
        revision: A label for this definition. A label never names two definitions;
            None derives it from the fingerprint, so that it cannot drift.
        parameters: When given, a launch accepts these parameters and no others.
    """

    name: str
    steps: tuple[Node, ...] = field(converter=_nodes)
    revision: str | None = field(default=None, kw_only=True)
    parameters: tuple[Parameter, ...] = field(
        default=(), kw_only=True, converter=_parameters
    )
