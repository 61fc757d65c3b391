"""What users write for a step: the node that works, and what belongs to it."""

from collections.abc import Callable, Iterable, Mapping
from enum import Enum, StrEnum
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from attrs import field, frozen

from ...storage.model.execution import End
from ...storage.model.names import NameKind, check_name
from .converters import list_of, targets_if_any

if TYPE_CHECKING:
    from .job_steps import ChildJob

Function: TypeAlias = Callable[..., Any]
"""User code, plain or async; what it is called with depends on where it stands."""
Component: TypeAlias = Any
"""A user's reader or writer object; its methods are checked when compiling."""


class Filtered(Enum):
    """What a processor returns to drop an item."""

    FILTERED = "filtered"

    def __repr__(self) -> str:
        return self.name


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
    return list_of(every, "listeners")


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
        then: Maps exit patterns to a node id, COMPLETE, FAIL, STOP or a ``Stop``. In a
            pattern ``*`` is any text and ``?`` one character; the more specific pattern
            wins.
        start_limit: How often the step may be started within one instance of the job,
            1 to 2^32 - 1; in a loop, each visit. None: as often as needed.
        visit_limit: How often an attempt may come to the node, 1 to 100,000; needed on
            every way that leads back to where it began. None: once, or as often as
            such a node allows. A visit too many fails the job.
        allow_start_if_complete: Whether a restart runs the step again although it had
            completed.
        restartable: False keeps a step that began in an earlier attempt and did not
            complete from being run again: the job fails at it, in every further attempt.
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
        timeout: Seconds, at most 1e9, from the step's start to the end of its work. Then
            the work is brought to an end as by a stop, and the step is FAILED, unless
            it has completed. What passed before a crash counts; an attempt after any
            other end has the whole time. Not part of the definition: what the launch
            is given counts. None: as long as it takes.
    """

    id: str
    work: "Function | Chunk | ChildJob"
    name: str | None = field(default=None, kw_only=True)
    then: Mapping[str, str | End] | None = field(
        default=None, kw_only=True, converter=targets_if_any, hash=False
    )
    start_limit: int | None = field(default=None, kw_only=True)
    visit_limit: int | None = field(default=None, kw_only=True)
    allow_start_if_complete: bool = field(default=False, kw_only=True)
    restartable: bool = field(default=True, kw_only=True)
    listeners: tuple[StepListener, ...] = field(
        default=(), kw_only=True, converter=_listeners
    )
    revision: str = field(default="1", kw_only=True)
    on_stop: OnStop | str = field(
        default=OnStop.CANCEL, kw_only=True, converter=_on_stop
    )
    grace: float = field(default=30.0, kw_only=True)
    write: Function | None = field(default=None, kw_only=True)
    timeout: float | None = field(default=None, kw_only=True)
