"""What a chunk step asks of a reader and of a writer.

Contracts only, no code. Implementations need not inherit from them. A method marked
"plain or async" may be an ordinary function, which runs in a worker thread and may
block, or a coroutine function, which runs on the event loop and must not.
"""

from collections.abc import Awaitable, Sequence
from enum import Enum
from typing import Protocol, TypeVar, runtime_checkable

from attrs import frozen

from ...storage.commands import Cursor
from ...storage.model.json import JsonObject

T_co = TypeVar("T_co", covariant=True)
T_contra = TypeVar("T_contra", contravariant=True)


class Delivery(Enum):
    """What a writer promises about rows that are written twice after a crash."""

    ATOMIC = "atomic_same_resource"
    """The rows are committed together with the checkpoint: each exactly once."""
    AT_LEAST_ONCE = "at_least_once"
    """The rows go elsewhere: those of a chunk not yet durable may come again."""


@frozen(kw_only=True)
class ChunkKey:
    """The name of one chunk, the same whenever the chunk is replayed.

    A writer whose target is not the store may use it to recognise a chunk that it has
    written before.
    """

    instance_id: int
    """The job instance, not the execution: a restart keeps it."""
    node: str
    """Path of the step, and of the partition if there is one."""
    visit: int
    """How often the flow has come to this step, from 1."""
    ordinal: int
    """How many items the step had read, over all attempts, before this chunk's first
    one: 0 for the first chunk."""


class Reader(Protocol[T_co]):
    """Where the items of a chunk step come from, in an order that never changes.

    The reader's state is the step's checkpoint: it is stored in the same transaction
    as the rows of the chunk. So after a crash the step goes on from the newest state
    that was stored, whatever was read since.

    A reader may say ``brief = True``: its plain `read` and `state` then run on the
    event loop while they are quick (``RuntimeOptions.patience``), and in a thread when
    they are not. That suits local files; anything that may wait must not.

    The methods are plain or async; no two calls overlap. A reader may be opened anew
    after it was closed, and must then remember nothing of the time before.
    """

    def open(self, state: JsonObject | None) -> Awaitable[None] | None:
        """Get ready to read.

        Args:
            state: What `state` returned when the last chunk was committed; None for a
                step that has not committed any. Raise an error when the input is not
                the one that the state belongs to; never guess.
        """

    def read(self, n: int) -> Sequence[T_co] | Awaitable[Sequence[T_co]]:
        """Give the next items: at most *n*, fewer if convenient, none only at the end.

        When it raises, the position stays as it was: `state` does not change, and
        a repeated call begins with the same item.
        """

    def state(self) -> JsonObject | Awaitable[JsonObject]:
        """Give the position after everything that `read` has returned.

        It must be JSON, small (64 KiB at most when written), free of secrets, and
        enough to go on in another process.
        """

    def close(self) -> Awaitable[None] | None:
        """Release what `open` acquired; also called when `open` or `read` failed."""


@runtime_checkable
class SizedReader(Reader[T_co], Protocol[T_co]):
    """A reader that knows how much of its input it has consumed."""

    def fraction(self) -> float | None:
        """Tell the consumed part of the input, from 0 to 1; None when it is not known.

        It serves the percentage and the time left. It is called between reads, on the
        event loop, and must not block. Better None than an invented number.
        """


class Writer(Protocol[T_contra]):
    """Where the results of a chunk step go.

    A `Delivery.ATOMIC` writer writes into the store's own database: `open` and `write`
    get a cursor inside a transaction, for `write` the one that also stores the
    checkpoint. They must be plain functions, must not keep the cursor, and must
    neither commit nor roll back. A `Delivery.AT_LEAST_ONCE` writer gets None instead,
    its methods are plain or async, and what it wrote must be durable when `write`
    returns.
    """

    @property
    def delivery(self) -> Delivery:
        """Say which of the two it is; the same for the writer's whole life."""

    def open(self, cursor: Cursor | None) -> Awaitable[None] | None:
        """Get ready to write: create or check the target. Called once per attempt."""

    def write(
        self, cursor: Cursor | None, rows: Sequence[T_contra], chunk_key: ChunkKey
    ) -> Awaitable[None] | None:
        """Write all *rows* of a chunk, or raise an error.

        Args:
            cursor: The cursor of this chunk's transaction, or None.
            rows: Never empty; in the order in which they were read.
            chunk_key: The same when the chunk is replayed.
        """

    def close(self) -> Awaitable[None] | None:
        """Release what `open` acquired; also called when a write failed."""
