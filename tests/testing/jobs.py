"""Jobs of every kind that this release has, each with its story.

What fails does so in the first attempt only, so that one more launch brings the job to
its end; a job that fails for ever has a story of one launch.
"""

from collections.abc import Callable
from functools import partial

import trio

from tests.job.components import AsyncReader, ListReader, RowWriter
from triolet.actors import (
    COMPLETE,
    FILTERED,
    STOP,
    Chunk,
    ChunkJob,
    Cursor,
    DeciderContext,
    Decision,
    Exit,
    FromParent,
    Job,
    JobContext,
    JobListener,
    JobOutcome,
    JobStep,
    Node,
    Parameter,
    Partition,
    PartitionedStep,
    PlannerContext,
    Split,
    Step,
    StepContext,
    StepListener,
    StepOutcome,
    Stop,
    TableWriter,
    TaskletJob,
)
from triolet.actors.testing import Scenario

ITEMS = tuple(range(1, 8))


async def note(ctx: StepContext) -> None:
    """Work with a state, and with checkpoints of trio."""
    await trio.lowlevel.checkpoint()
    ctx.state["done"] = ctx.node
    await trio.lowlevel.checkpoint()


def plain(ctx: StepContext) -> None:
    ctx.state["key"] = ctx.idempotency_key


async def cooperative(ctx: StepContext) -> None:
    for number in range(3):
        if ctx.stop.is_set():
            return
        ctx.state["number"] = number
        await trio.sleep(1)


async def first_time_broken(ctx: StepContext) -> None:
    ctx.state["tried"] = True
    await trio.lowlevel.checkpoint()
    if ctx.attempt == 1:
        raise ValueError("the first time it fails")


async def code(text: str, ctx: StepContext) -> Exit:
    return Exit(text)


async def answer(ctx: DeciderContext) -> str:
    await trio.lowlevel.checkpoint()
    return "YES" if ctx.state_of("a") else "NO"


def wait_once(ctx: DeciderContext) -> str:
    return "WAIT" if ctx.attempt == 1 else "GO"


def sequential() -> Job:
    return Job(
        "sequential", [Step("a", note), Step("b", plain), Step("c", cooperative)]
    )


def deciding() -> Job:
    return Job(
        "deciding",
        [
            Decision("entry", lambda ctx: "GO", then={"GO": "a"}),
            Step("a", note),
            Decision("enough", answer, then={"YES": "b", "*": STOP}),
            Step("b", partial(code, "PART"), then={"PART": "again"}),
            Decision("again", lambda ctx: "X", then={"X": "broken", "Y": "skipped"}),
            Step("skipped", note),
            Step("broken", first_time_broken, then={"*": "last"}),
            Decision("last", answer, then={"YES": "c"}),
            Step("c", plain),
        ],
    )


def resuming() -> Job:
    """Stops twice, each time to go on elsewhere, and fails behind the second stop."""
    return Job(
        "resuming",
        [
            Step("a", note, then={"*": Stop(resume_at="d")}),
            Decision("d", answer, then={"YES": Stop(resume_at="b")}),
            Step("b", first_time_broken, then={"FAILED": Stop("c"), "*": "c"}),
            Step("c", plain),
        ],
    )


def looping() -> Job:
    """Goes round three times; fails once in the second lap, within a split."""

    async def count(ctx: StepContext) -> None:
        await trio.lowlevel.checkpoint()
        ctx.state["laps"] = 1 + int(str(ctx.state_of(ctx.node).get("laps", 0)))

    async def broken_lap(ctx: StepContext) -> None:
        ctx.state["visit"] = ctx.visit
        await trio.lowlevel.checkpoint()
        if ctx.visit == 2 and ctx.attempt == 1:
            raise ValueError("the second lap fails once")

    async def turn(ctx: DeciderContext) -> str:
        await trio.lowlevel.checkpoint()
        return "OUT" if ctx.state_of("a")["laps"] == 3 else "AGAIN"

    chunk = Chunk(ListReader(ITEMS[:3]), RowWriter(), size=2)
    return Job(
        "looping",
        [
            Step("a", count),
            Split("s", [Step("l", broken_lap), Step("r", plain)]),
            Step("items", chunk),
            Decision("turn", turn, then={"AGAIN": "a", "OUT": "z"}, visit_limit=5),
            Step("z", note),
        ],
    )


def failing_once() -> Job:
    return Job(
        "failing", [Step("a", note), Step("b", first_time_broken), Step("c", note)]
    )


def failing_always() -> Job:
    async def broken(ctx: StepContext) -> None:
        raise ValueError("it always fails")

    return Job("broken", [Step("a", note), Step("b", broken), Step("c", note)])


def unmapped() -> Job:
    step = Step("a", partial(code, "LATE"), then={"COMPLETED": "b"})
    return Job("unmapped", [step, Step("b", note)])


def routed_failure() -> Job:
    def broken(ctx: StepContext) -> None:
        raise ValueError("this leads to the clean-up")

    nodes: list[Node] = [
        Step("a", note),
        Step("b", broken, then={"FAILED": "tidy", "*": COMPLETE}),
        Step("tidy", note),
    ]
    return Job("routed", nodes)


def stopping_once() -> Job:
    then = {"WAIT": STOP, "GO": "b"}
    return Job(
        "stopping",
        [Step("a", note), Decision("wait", wait_once, then=then), Step("b", note)],
    )


def listening() -> Job:
    async def before(ctx: StepContext) -> None:
        ctx.state["before"] = True
        await trio.lowlevel.checkpoint()

    async def after(ctx: StepContext, outcome: StepOutcome) -> Exit | None:
        await trio.lowlevel.checkpoint()
        return Exit("PART") if outcome.exit_code == "COMPLETED" else None

    def refuse(ctx: StepContext) -> None:
        if ctx.attempt == 1:
            raise ValueError("not yet")

    both = StepListener("both", before=before, after=after)
    refusing = StepListener("refusing", before=refuse)
    return Job(
        "listening",
        [
            Step("a", note, listeners=[both], then={"PART": "b"}),
            Step("b", plain, listeners=[both, refusing]),
            Step("c", note),
        ],
    )


def heard() -> Job:
    """Job listeners, of which one fails before and one after, each once."""

    async def before(ctx: JobContext) -> None:
        await trio.lowlevel.checkpoint()
        if ctx.attempt == 1:
            raise ValueError("not yet")

    async def after(ctx: JobContext, outcome: JobOutcome) -> None:
        await trio.lowlevel.checkpoint()
        if ctx.attempt == 2:
            raise ValueError("not yet")

    both = JobListener("both", before=before, after=after)
    return Job("heard", [Step("a", note), Step("b", plain)], listeners=[both])


def one_tasklet() -> Job:
    """A tasklet by itself; its job listeners fail as in `heard`."""
    (listener,) = heard().listeners
    audit = StepListener("audit", before=lambda ctx: None, after=lambda ctx, end: None)
    step = Step("only", note, listeners=[audit])
    return TaskletJob("one-tasklet", step, listeners=[listener])


def one_chunk() -> Job:
    """A chunk step by itself; one of its items is broken the first time."""
    processor = partial(_broken_at_five, [1])
    chunk = Chunk(ListReader(ITEMS), RowWriter(), processor, size=2)
    return ChunkJob("one-chunk", Step("copy", chunk))


def _odd(item: int) -> object:
    return FILTERED if item % 2 else item


def _broken_at_five(ctx: list[int], item: int) -> int:
    if item == 5 and ctx:
        ctx.pop()
        raise ValueError("this item is broken the first time")
    return item


async def _slowly(item: int) -> int:
    await trio.lowlevel.checkpoint()
    return item * 10


def copying() -> Job:
    """Copies, with a filter, then with an async reader and processor."""
    slow = Chunk(AsyncReader(ListReader(ITEMS)), RowWriter(), _slowly, size=2)
    return Job(
        "copying",
        [
            Step("copy", Chunk(ListReader(ITEMS), RowWriter(), _odd, size=3)),
            Step("slowly", slow),
            Step("nothing", Chunk(ListReader(()), RowWriter(), size=3)),
        ],
    )


def copying_with_failure() -> Job:
    processor = partial(_broken_at_five, [1])
    listener = StepListener("quiet", before=lambda ctx: None)
    reader, writer = ListReader(ITEMS), TableWriter("numbers", {"number": int})
    chunk = Chunk(reader, writer, lambda item: (processor(item),), size=2)
    return Job(
        "restarted",
        [Step("a", note), Step("copy", chunk, listeners=[listener]), Step("c", note)],
    )


def splitting() -> Job:
    """Branches of tasklets and of chunks, one of which fails the first time."""
    writer = TableWriter("copied", {"number": int})
    copy = Chunk(ListReader(ITEMS), writer, lambda item: (item,), size=3)
    branches = [
        [Step("b1", note), Step("b2", first_time_broken)],
        [Step("c1", plain), Step("c2", cooperative)],
        [Step("copy", copy)],
    ]
    return Job(
        "splitting",
        [
            Step("a", note),
            Split("both", branches, max_parallel=2),
            Decision("enough", answer, then={"YES": "d", "*": STOP}),
            Step("d", note),
        ],
    )


def branching() -> Job:
    """Branches with rules: one waits once, one mends a failure, one fails once."""

    def broken(ctx: StepContext) -> None:
        raise ValueError("this leads to the step that mends it")

    mended: list[Node] = [
        Step("b1", broken, then={"FAILED": "b2", "*": "b3"}),
        Step("b2", plain, then={"*": "b3"}),
        Step("b3", partial(code, "PART"), then={"PART": COMPLETE}),
    ]
    waiting: list[Node] = [
        Decision("c1", wait_once, then={"GO": "c2", "WAIT": STOP}),
        Step("c2", note),
    ]
    failing: list[Node] = [
        Step("d1", note),
        Decision("d2", answer, then={"YES": "d3", "NO": COMPLETE}),
        Step("d3", first_time_broken),
    ]
    split = Split("both", [mended, waiting, failing, Step("e", note)], max_parallel=2)
    return Job("branching", [Step("a", note), split, Step("z", cooperative)])


def nesting() -> Job:
    """Splits in a split: partitions that fail once, and a failure that is routed."""

    def broken(ctx: StepContext) -> None:
        raise ValueError("its join leads on")

    parts = PartitionedStep("parts", share, four, max_workers=2)
    failing = Split("inner", [[Step("b", note), parts], Step("c", cooperative)])
    forgiven = Split(
        "other",
        [Step("d", broken), Step("e", plain)],
        then={"FAILED": "f", "*": STOP},
        on_failure="drain_siblings",
    )
    branches: list[list[Node]] = [[failing], [forgiven, Step("f", note)]]
    split = Split("outer", branches, max_parallel=2)
    last = Decision("last", answer, then={"YES": "z"})
    return Job("nesting", [Step("a", note), split, last, Step("z", note)])


async def share(ctx: StepContext) -> None:
    """Work on a partition; one of them fails the first time."""
    assert ctx.partition is not None
    await trio.lowlevel.checkpoint()
    ctx.state["did"] = ctx.partition.context
    if ctx.partition.key == "b" and ctx.attempt == 1:
        raise ValueError("the first time it fails")


async def four(ctx: PlannerContext) -> list[tuple[str, dict[str, int]]]:
    await trio.lowlevel.checkpoint()
    return [(key, {"at": at}) for at, key in enumerate("dbca")]


def load(partition: Partition) -> Chunk:
    items = [(partition.key, number) for number in range(5)]
    return Chunk(
        ListReader(items), TableWriter("loaded", {"key": str, "n": int}), size=2
    )


def partitioning() -> Job:
    """Partitions of tasklets, one of which fails once, and of chunks."""
    chunk = load(Partition(key="", ordinal=1, context={}))
    return Job(
        "partitioning",
        [
            Step("a", note),
            PartitionedStep("parts", share, four, 4, max_workers=2),
            PartitionedStep("loads", chunk, four, 4, max_workers=3, factory=load),
            Step("z", note),
        ],
    )


def parenting() -> Job:
    """Children one after the other and side by side; one fails once, one has a child."""
    reader, writer = ListReader(ITEMS), TableWriter("nested", {"number": int})
    copy = Chunk(reader, writer, lambda item: (item,), size=3)
    small = Job("small", [Step("x", note), Step("y", cooperative)])
    inner = Job(
        "inner",
        [Step("a", note), Step("b", first_time_broken), JobStep("c", small)],
        parameters=[Parameter("day", str), Parameter("shift", int)],
    )

    async def given(ctx: StepContext) -> dict[str, object]:
        await trio.lowlevel.checkpoint()
        return {"day": FromParent("day"), "shift": ctx.attempt}

    branches = [[JobStep("left", small)], [JobStep("right", small)]]
    return Job(
        "nesting",
        [
            JobStep("copy", Job("copier", [Step("copy", copy)])),
            JobStep("inner", inner, parameters=given, exits={"COMPLETED": "OK"}),
            Split("both", branches, max_parallel=2),
            Step("z", note),
        ],
    )


def writing() -> Job:
    def write(cursor: Cursor, ctx: StepContext) -> None:
        cursor.execute("CREATE TABLE IF NOT EXISTS notes (node, attempt)")
        cursor.execute("INSERT INTO notes VALUES (?, ?)", (ctx.node, "once"))
        if ctx.node == "b" and ctx.attempt == 1:
            raise ValueError("the first write fails")

    return Job(
        "writing",
        [
            Step("a", note, write=write),
            Step("b", plain, write=write),
            Step("c", note, write=write, then={"*": "d"}),
            Decision("d", lambda ctx: "END", then={"END": COMPLETE}),
        ],
    )


def long_lasting() -> Job:
    """Long enough for heartbeats."""

    async def sleep(ctx: StepContext) -> None:
        await trio.sleep(25)

    return Job("lasting", [Step("a", sleep), Step("b", sleep)])


async def slow_once(ctx: StepContext) -> None:
    """Take too long in the first attempt."""
    ctx.state["tried"] = True
    if ctx.attempt == 1:
        await trio.sleep(3600)


async def slow_item(item: int) -> tuple[int]:
    await trio.sleep(1)
    return (item,)


def timed() -> Job:
    """Time-outs of tasklets, of which one leads on, of a chunk and of partitions."""

    async def slow(ctx: StepContext) -> None:
        await ctx.stop.wait()
        await trio.sleep(1)

    async def slow_share(ctx: StepContext) -> None:
        assert ctx.partition is not None
        if ctx.partition.key == "b":
            await slow_once(ctx)

    then = {"FAILED": "copy", "*": COMPLETE}
    writer = TableWriter("timed", {"number": int})
    items = Chunk(ListReader(ITEMS), writer, slow_item, size=2)
    return Job(
        "timed",
        [
            Step("slow", slow, timeout=5, on_stop="cooperate", grace=3, then=then),
            Step("copy", items, timeout=100),
            PartitionedStep("parts", Step("share", slow_share, timeout=5), four, 4),
            Step("z", note, timeout=5),
        ],
        timeout=200,
    )


def timed_as_a_whole() -> Job:
    """A job that takes too long in its first attempt, in a split."""
    branches = [Step("b", slow_once), Step("c", cooperative, timeout=60)]
    split = Split("both", branches, max_parallel=2)
    return Job("hurried", [Step("a", note), split, Step("d", plain)], timeout=20)


STORIES: dict[Callable[[], Job], int] = {
    sequential: 1,
    deciding: 2,
    resuming: 3,
    looping: 2,
    failing_once: 2,
    failing_always: 1,
    unmapped: 1,
    routed_failure: 1,
    stopping_once: 2,
    listening: 2,
    heard: 3,
    one_tasklet: 3,
    one_chunk: 2,
    copying: 1,
    copying_with_failure: 2,
    writing: 2,
    splitting: 2,
    branching: 2,
    nesting: 2,
    partitioning: 2,
    parenting: 2,
    long_lasting: 1,
    timed: 6,
    timed_as_a_whole: 6,
}
"""How many launches each job has until it ends. Undisturbed, those with timeouts need two:
one more for each death that the time was over after."""


def scenario(job: Callable[[], Job], store: str, seed: int = 0) -> Scenario:
    return Scenario(
        job,
        parameters={"day": "2026-11-30"},
        store=store,
        seed=seed,
        launches=STORIES[job],
    )
