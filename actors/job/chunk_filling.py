"""Filling chunks: the items of a chunk are read and processed, in one go if they can be.

Nothing of it happens in a transaction, and nothing of it is durable.
"""

from collections.abc import Callable, Sequence
from functools import partial
from operator import length_hint
from typing import Any

from attrs import define, evolve, field, frozen

from ...storage.model.errors import with_article
from ..kernel.offload import Offload
from ..plan.actions import OpenStep
from ..plan.definition import FILTERED, Chunk, Step
from .boundary import ComponentFailed, Where, is_async
from .step import Environment


@frozen
class Filled:
    """A chunk between reading and writing."""

    read: int
    rows: Sequence[Any]
    state: object

    @property
    def ended(self) -> bool:
        """Whether there was nothing more to read."""
        return self.read == 0


@define(eq=False)
class ChunkFilling:
    """Reads and processes the chunks of one run of a chunk step."""

    step: Step
    chunk: Chunk
    row: OpenStep
    environment: Environment
    _offload: Offload = field(init=False)

    def __attrs_post_init__(self) -> None:
        self._offload = Offload(
            adaptive=self.environment.boundary.limiter is not None,
            patience=self.environment.patience,
        )

    async def fill(self) -> Filled:
        """Read and process the next chunk.

        Raises:
            ComponentFailed: The reader or the processor raised, or the reader returned
                no list, or one that is too long.
            OutcomeUnknown: One of them said so.
        """
        reader, processor = self.chunk.reader, self.chunk.processor
        plain = not (is_async(reader.read) or is_async(reader.state))
        if plain and processor is None and getattr(reader, "brief", False):
            return await self._fill_briefly()
        if plain and not (processor is not None and is_async(processor)):
            return await self.environment.boundary.in_thread(self._fill_plainly)
        items = await self._ask_reader(reader.read, self.chunk.size)
        self._check_read(items)
        state = await self._ask_reader(reader.state) if items else None
        if processor is None or not items:
            return Filled(len(items), items, state)
        if is_async(processor):
            rows = await self._process_each(items)
        else:
            rows = await self.environment.boundary.in_thread(
                partial(self._process, items)
            )
        return Filled(len(items), rows, state)

    async def _fill_briefly(self) -> Filled:
        """Read on the event loop while its patience lasts."""
        if self._offload.threaded:
            return await self._offload.in_thread(ChunkFilling._fill_plainly, self)
        return self._offload.inline(ChunkFilling._fill_plainly, self)

    def _fill_plainly(self) -> Filled:
        """Read and process a chunk in one go, in a thread."""
        reader = self.chunk.reader
        where = self._where("reader")
        try:
            items = reader.read(self.chunk.size)
            self._check_read(items)
            state = reader.state() if items else None
        except (Exception, SystemExit) as exc:
            raise self.environment.boundary.failed(where, exc) from exc
        return Filled(len(items), self._process(items), state)

    def _check_read(self, items: object) -> None:
        where = self._where("reader")
        refusal = self.environment.boundary.refusal
        if not isinstance(items, Sequence) or isinstance(items, str | bytes):
            kind = with_article(type(items).__name__)
            raise refusal(where, f"the reader returned {kind}; return a list of items")
        if len(items) > self.chunk.size:
            reason = f"{len(items)} items when asked for {self.chunk.size}"
            raise refusal(where, f"the reader returned {reason}")

    def _process(self, items: Sequence[Any]) -> Sequence[Any]:
        processor = self.chunk.processor
        if processor is None:
            return items
        waiting = iter(list(items))
        try:
            rows = list(map(processor, waiting))
            if len(rows) < len(items):
                raise RuntimeError("the processor raised StopIteration")  # noqa: TRY301  # it ends map() quietly
        except (Exception, SystemExit) as exc:
            done = len(items) - length_hint(waiting)
            raise self._item_failed(done, exc) from exc
        if any(row is FILTERED for row in rows):
            return [row for row in rows if row is not FILTERED]
        return rows

    async def _process_each(self, items: Sequence[Any]) -> Sequence[Any]:
        processor = self.chunk.processor
        assert processor is not None
        rows = []
        for number, item in enumerate(items, 1):
            try:
                row = await processor(item)
            except (Exception, BaseExceptionGroup, SystemExit) as exc:
                raise self._item_failed(number, exc) from exc
            if row is not FILTERED:
                rows.append(row)
        return rows

    def _item_failed(self, number: int, exc: BaseException) -> BaseException:
        boundary = self.environment.boundary
        result = boundary.failed(self._where("processor"), exc)
        if not isinstance(result, ComponentFailed) or result.failure.message is None:
            return result
        item = self.row.counts.read + number
        message = boundary.cleaned(f"item {item}: {result.failure.message}")
        return ComponentFailed(evolve(result.failure, message=message), exc)

    async def has_ended(self) -> bool:
        """Look for one more item: a step whose last chunk is durable has not stopped."""
        try:
            items = await self._ask_reader(self.chunk.reader.read, 1)
            self._check_read(items)
        except ComponentFailed:
            return False
        return not items

    def _where(self, role: str) -> Where:
        return Where(self.step.id, f"{role}_failed")

    async def _ask_reader(
        self, function: Callable[..., Any], *arguments: object
    ) -> Any:  # noqa: ANN401  # what user code returns is its own affair
        call = self.environment.boundary.call
        return await call(self._where("reader"), function, *arguments)
