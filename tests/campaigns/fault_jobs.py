"""The jobs of the fault campaign: four shapes, each with rows that must be there once."""

from collections.abc import Sequence

import trio
from attrs import define

from triolet.actors import (
    Chunk,
    ChunkKey,
    Cursor,
    DeciderContext,
    Decision,
    Delivery,
    Job,
    JsonObject,
    Step,
    StepContext,
)

SHAPES = 4
STEPS = 12
ITEMS = 300
CHUNK = 10
PAUSE = 0.01
TABLE = "CREATE TABLE IF NOT EXISTS effect (job text NOT NULL, what text NOT NULL)"


def name_of(number: int) -> str:
    return f"shape-{number % SHAPES}-{number}"


def job_of(number: int) -> Job:
    """Make the job of that number; its number tells its shape."""
    return _MAKERS[number % SHAPES](name_of(number))


def effects_of(number: int) -> list[str]:
    """Give the rows that the job leaves, sorted."""
    items = [f"item {item}" for item in range(ITEMS)]
    steps = [f"step-{step}" for step in range(STEPS)]
    return sorted((steps, ["first", "many"], items, [*items, "last"])[number % SHAPES])


@define
class Effect:
    """An enlisted write of one row."""

    job: str
    what: str

    def __call__(self, cursor: Cursor, ctx: StepContext) -> None:
        cursor.execute(f"INSERT INTO effect VALUES ('{self.job}', '{self.what}')")


async def _rest(ctx: StepContext) -> None:
    await trio.sleep(PAUSE)
    ctx.state["rested"] = True


def _rest_in_thread(ctx: StepContext) -> None:
    ctx.state["rested"] = True


def _sequence(name: str) -> Job:
    steps = [f"step-{step}" for step in range(STEPS)]
    return Job(name, [Step(one, _rest, write=Effect(name, one)) for one in steps])


def _choose(ctx: DeciderContext) -> str:
    return "MANY" if ctx.state_of("first").get("rested") else "FEW"


def _decided(name: str) -> Job:
    return Job(
        name,
        [
            Step("first", _rest_in_thread, write=Effect(name, "first")),
            Decision("enough", _choose, then={"MANY": "many", "FEW": "few"}),
            Step("few", _rest, write=Effect(name, "few"), then={"*": "last"}),
            Step("many", _rest, write=Effect(name, "many"), then={"*": "last"}),
            Step("last", _rest),
        ],
    )


@define
class Numbers:
    """A reader of the numbers below `ITEMS`."""

    at: int = 0

    def open(self, state: JsonObject | None) -> None:
        at = state["at"] if state else 0
        assert isinstance(at, int)
        self.at = at

    async def read(self, n: int) -> list[int]:
        await trio.sleep(PAUSE)
        rows = list(range(self.at, min(self.at + n, ITEMS)))
        self.at += len(rows)
        return rows

    def state(self) -> JsonObject:
        return {"at": self.at}

    def close(self) -> None:
        pass


@define
class Effects:
    """A writer of one row for each item."""

    job: str
    delivery: Delivery = Delivery.ATOMIC

    def open(self, cursor: Cursor | None) -> None:
        pass

    def write(
        self, cursor: Cursor | None, rows: Sequence[int], chunk_key: ChunkKey
    ) -> None:
        assert cursor is not None
        values = ", ".join(f"('{self.job}', 'item {row}')" for row in rows)
        cursor.execute(f"INSERT INTO effect VALUES {values}")

    def close(self) -> None:
        pass


def _load(name: str) -> Step:
    chunk = Chunk(reader=Numbers(), writer=Effects(name), size=CHUNK)
    return Step("load", chunk)


def _loaded(name: str) -> Job:
    return Job(name, [_load(name)])


def _loaded_and_more(name: str) -> Job:
    last = Step("last", _rest, write=Effect(name, "last"))
    return Job(name, [Step("begin", _rest), _load(name), last])


_MAKERS = (_sequence, _decided, _loaded, _loaded_and_more)
