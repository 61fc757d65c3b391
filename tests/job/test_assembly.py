"""Assembled jobs: launched like compiled ones, with steps that are made for a launch."""

from typing import Any

import pytest
import trio

from tests.job.components import ListReader, RowWriter
from tests.job.harness import Store, Trace, job, launch, running
from triolet.actors import (
    AssemblyError,
    BatchStatus,
    Chunk,
    ComponentMismatch,
    DefinitionUnknown,
    Factory,
    FactoryFailed,
    Node,
    Partition,
    PartitionedStep,
    PlannerContext,
    ShuttingDown,
    Split,
    Step,
    StepContext,
    StepNameMismatch,
    assemble,
    compile_job,
)


async def test_a_stored_plan_is_continued_with_code_bound_to_it(
    store: Store, trace: Trace
) -> None:
    first = job(trace.step("a"), Step("b", trace.failing("b", 2)), revision="r1")
    await launch(store, first)
    async with running(store) as runtime:
        manifest = await runtime.manifest("demo", "r1")
        bound = {"a": trace.work("a again"), "b": trace.work("b again")}
        again = assemble("demo", manifest, bound, revision="r1")
        report = await runtime.launch(again)
    assert report.status is BatchStatus.COMPLETED
    assert trace.calls == ["a", "b", "b again"]
    assert report.step("a").reused


async def test_the_manifest_of_an_unknown_definition_is_not_found(store: Store) -> None:
    async with running(store) as runtime:
        with pytest.raises(DefinitionUnknown):
            await runtime.manifest("demo", "r1")


def side_by_side() -> str:
    """Give the manifest of two branches of chunks, and a partitioned step of chunks."""

    def chunk() -> Chunk:
        return Chunk(ListReader(()), RowWriter(), size=2)

    nodes: list[Node] = [
        Step("a", print),
        Split("both", [Step("b", chunk()), Step("c", chunk())]),
        PartitionedStep("parts", chunk(), print, 2, factory=print),
    ]
    return compile_job(job(*nodes)).plan.manifest


async def two(ctx: PlannerContext) -> list[tuple[str, dict[str, int]]]:
    return [("x", {}), ("y", {})]


async def test_factories_make_the_steps_of_each_launch_and_each_partition(
    store: Store,
) -> None:
    made: list[object] = []

    async def one_async() -> Chunk:
        await trio.lowlevel.checkpoint()
        made.append("b")
        return Chunk(ListReader([1, 2, 3]), RowWriter(), size=2)

    def one() -> Step:
        made.append("c")
        return Step("c", Chunk(ListReader([4]), RowWriter(), size=2))

    def part(partition: Partition) -> Chunk:
        made.append(partition.key)
        return Chunk(ListReader([partition.key]), RowWriter(), size=2)

    async def a(ctx: StepContext) -> None:
        made.append("a runs")

    bound: dict[str, Any] = {
        "a": a,
        "b": Factory(one_async),
        "c": Factory(one),
        "parts": two,
        "parts.worker": Factory(part),
    }
    assembled = assemble("demo", side_by_side(), bound, budgets={"both": 2})
    async with running(store) as runtime, trio.open_nursery() as nursery:
        for day in ("1", "2"):
            nursery.start_soon(runtime.launch, assembled, {"day": day})
    assert {one.status for one in store.executions} == {BatchStatus.COMPLETED}
    assert sorted(map(str, made)) == sorted(["a runs", "b", "c", "x", "y"] * 2)
    assert sorted(map(str, store.rows())) == sorted("1234xy" * 2)
    assert min(made.index("b"), made.index("c")) < made.index("a runs")


async def refused(store: Store, make: object) -> AssemblyError:
    """Launch a job of one step with a factory; nothing but the owner is written."""
    manifest = compile_job(job(Step("a", print, revision="7"))).plan.manifest
    bound = {"a": Factory(make)}  # type: ignore[arg-type]  # any function
    async with running(store) as runtime:
        with pytest.raises(AssemblyError) as caught:
            await runtime.launch(assemble("demo", manifest, bound))
    assert store.commands == []
    return caught.value


async def test_a_factory_that_raises_ends_the_launch_before_anything_is_written(
    store: Store,
) -> None:
    def broken() -> None:
        raise ValueError("secret")

    error = await refused(store, broken)
    assert error == FactoryFailed("a", "ValueError")
    assert str(error) == "the factory of 'a' raised ValueError"
    assert isinstance(error.__cause__, ValueError)


async def test_a_factory_must_make_what_the_plan_declares(
    store: Store, trace: Trace
) -> None:
    error = await refused(store, lambda: Step("b", print, revision="7"))
    assert error == StepNameMismatch("a", "a", "b")
    error = await refused(store, lambda: Step("a", print))
    assert isinstance(error, ComponentMismatch)
    assert error.reason == "step 'a': revision '7' -> '1'"
    error = await refused(store, lambda: 5)
    assert str(error) == (
        "what is bound to 'a' does not fit the plan: the work must be a function, "
        "not int"
    )


async def test_a_runtime_that_is_stopping_calls_no_factory(
    store: Store, trace: Trace
) -> None:
    manifest = compile_job(job(trace.step("a"))).plan.manifest
    async with running(store) as runtime:
        runtime.stop()
        with pytest.raises(ShuttingDown):
            await runtime.launch(
                assemble("demo", manifest, {"a": Factory(trace.failing("made"))})
            )
    assert trace.calls == []
