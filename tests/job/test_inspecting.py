"""The tree of actors, as a runtime shows it."""

import trio
import trio.testing

from tests.job.harness import Store, running
from triolet.actors import (
    Activity,
    ActorKind,
    Job,
    PartitionedStep,
    Split,
    Step,
    StepContext,
)


async def wait(ctx: StepContext) -> None:
    await trio.sleep(10)


async def linger(ctx: StepContext) -> None:
    with trio.CancelScope(shield=True):
        await trio.sleep(10)


async def test_the_tree_shows_what_runs_and_what_it_is_about(
    store: Store, autojump_clock: trio.testing.MockClock
) -> None:
    split = Split("both", [Step("a", wait), Step("b", wait)], max_parallel=2)
    parts = PartitionedStep(
        "parts", linger, lambda ctx: [("x", {}), ("y", {}), ("z", {})], 3, max_workers=2
    )
    job = Job("tree", [Step("first", wait), split, parts])
    async with running(store) as runtime, trio.open_nursery() as nursery:
        assert [str(one) for one in runtime.inspect().lines()] == [
            "runtime owner 1: running",
            "  storage control: idle",
        ]
        nursery.start_soon(runtime.launch, job)
        await trio.sleep(5)
        assert list(runtime.inspect().lines())[2:] == [
            "  job tree (execution 1): running",
            "    step first: running",
        ]
        await trio.sleep(10)
        split_actor = runtime.inspect().children[1].children[0]
        assert (split_actor.kind, split_actor.name) == (ActorKind.SPLIT, "both")
        assert [one.name for one in split_actor.children] == ["a", "b"]
        steps = [one.children[0] for one in split_actor.children]
        assert [one.kind for one in steps] == [ActorKind.STEP] * 2
        await trio.sleep(10)
        runtime.stop()
        await trio.sleep(1)
        tree = runtime.inspect()
        (actor,) = [one for one in tree.children if one.kind is ActorKind.JOB]
        (manager,) = actor.children
        assert tree.activity is Activity.STOPPING
        assert manager.kind is ActorKind.PARTITION_MANAGER
        assert [one.name for one in manager.children] == ["partition 1", "partition 2"]
        steps = [one.children[0] for one in manager.children]
        assert [one.activity for one in steps] == [Activity.STOPPING] * 2
        assert str(manager).splitlines()[0] == "partition manager parts: stopping"
