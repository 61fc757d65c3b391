"""Readers and writers for tests: of each kind one, and all of them note their calls."""

from collections.abc import Callable, Sequence
from typing import Any, ClassVar

import trio
from attrs import define, field

from triolet.actors import Chunk, ChunkKey, Cursor, Delivery, JsonObject

Hook = Callable[[], object]


@define(eq=False)
class ListReader:
    """Reads a list; its state is the position, and a tag to see what comes back."""

    items: Sequence[Any]
    log: list[str] = field(factory=list)
    states: list[JsonObject | None] = field(factory=list)
    """What `open` was given, one per attempt."""
    on_read: Callable[[int], object] = lambda position: None
    """Called with the position before each read."""
    position: int = 0

    def open(self, state: JsonObject | None) -> None:
        self.log.append("open reader")
        self.states.append(state)
        position = 0 if state is None else state["position"]
        assert isinstance(position, int)
        self.position = position

    def read(self, n: int) -> Sequence[Any]:
        self.on_read(self.position)
        found = self.items[self.position : self.position + n]
        self.position += len(found)
        return found

    def state(self) -> JsonObject:
        return {"position": self.position, "tag": "x"}

    def close(self) -> None:
        self.log.append("close reader")


@define(eq=False)
class AsyncReader:
    """The same with coroutine functions."""

    inner: ListReader

    async def open(self, state: JsonObject | None) -> None:
        await trio.lowlevel.checkpoint()
        self.inner.open(state)

    async def read(self, n: int) -> Sequence[Any]:
        await trio.lowlevel.checkpoint()
        return self.inner.read(n)

    async def state(self) -> JsonObject:
        await trio.lowlevel.checkpoint()
        return self.inner.state()

    async def close(self) -> None:
        await trio.lowlevel.checkpoint()
        self.inner.close()


@define(eq=False)
class ListWriter:
    """Writes elsewhere: to a list that no rollback reaches."""

    delivery: ClassVar = Delivery.AT_LEAST_ONCE
    log: list[str] = field(factory=list)
    chunks: list[list[Any]] = field(factory=list)
    keys: list[ChunkKey] = field(factory=list)
    on_write: Callable[[Sequence[Any]], object] = lambda rows: None
    """Called after the rows were written."""

    def open(self, cursor: Cursor | None) -> None:
        assert cursor is None
        self.log.append("open writer")

    def write(self, cursor: Cursor | None, rows: Sequence[Any], key: ChunkKey) -> None:
        assert cursor is None
        self.chunks.append(list(rows))
        self.keys.append(key)
        self.on_write(rows)

    def close(self) -> None:
        self.log.append("close writer")

    @property
    def rows(self) -> list[Any]:
        return [row for chunk in self.chunks for row in chunk]


@define(eq=False)
class AsyncWriter:
    """The same with coroutine functions."""

    delivery: ClassVar = Delivery.AT_LEAST_ONCE
    inner: ListWriter

    async def open(self, cursor: Cursor | None) -> None:
        await trio.lowlevel.checkpoint()
        self.inner.open(cursor)

    async def write(
        self, cursor: Cursor | None, rows: Sequence[Any], key: ChunkKey
    ) -> None:
        await trio.lowlevel.checkpoint()
        self.inner.write(cursor, rows, key)

    async def close(self) -> None:
        await trio.lowlevel.checkpoint()
        self.inner.close()


@define(eq=False)
class RowWriter:
    """Writes into the store's own database, with the checkpoint or not at all."""

    delivery: ClassVar = Delivery.ATOMIC
    log: list[str] = field(factory=list)
    keys: list[ChunkKey] = field(factory=list)
    on_write: Callable[[Sequence[Any]], object] = lambda rows: None
    """Called when the rows stand in the transaction."""

    def open(self, cursor: Cursor | None) -> None:
        assert cursor is not None
        self.log.append("open writer")
        cursor.execute("CREATE TABLE IF NOT EXISTS rows (x)")

    def write(self, cursor: Cursor | None, rows: Sequence[Any], key: ChunkKey) -> None:
        assert cursor is not None
        self.keys.append(key)
        cursor.executemany("INSERT INTO rows VALUES (?)", [(row,) for row in rows])
        self.on_write(rows)

    def close(self) -> None:
        self.log.append("close writer")


def copying(
    items: Sequence[Any], size: int = 10, **settings: Any
) -> tuple[Chunk, ListReader, RowWriter]:
    """Make a chunk that copies a list into the table ``rows``."""
    reader, writer = ListReader(items), RowWriter()
    return Chunk(reader, writer, size=size, **settings), reader, writer


def fail_once(at: object) -> Callable[[Sequence[Any]], None]:
    """Make a hook that raises the first time that it sees a row."""
    left = [1]

    def hook(rows: Sequence[Any]) -> None:
        if at in rows and left:
            left.pop()
            raise ValueError(f"{at} is not wanted")

    return hook
