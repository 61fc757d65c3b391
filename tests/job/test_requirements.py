"""What a job needs of its store is checked before anything is written."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
from attrs import evolve

from triolet.actors import (
    DefinitionError,
    InsufficientPoolCapacity,
    Job,
    JobStep,
    PartitionedStep,
    RuntimeOptions,
    Split,
    Step,
    UndeclaredCapability,
    compile_job,
    open_runtime,
)
from triolet.actors.job.options import connections_for
from triolet.actors.job.requirements import (
    Requirements,
    check_store,
    requirements_of,
)
from triolet.storage.backend import Capability, Descriptor, Waits
from triolet.storage.commands import Command, Cursor, OpenExecution
from triolet.storage.memory import MemoryBackend
from triolet.storage.stores import host_clock

PLAIN = Descriptor("plain", 0, 1, True, frozenset({Capability.EXECUTION_OWNERSHIP}))


class PlainBackend(MemoryBackend):
    """A store without enlisted writes."""

    @property
    def descriptor(self) -> Descriptor:
        return PLAIN

    def apply(
        self, batch_id: UUID, batch: Sequence[Command[Any]]
    ) -> Waits[Sequence[object]]:
        assert not any(isinstance(command, OpenExecution) for command in batch)
        return super().apply(batch_id, batch)


async def nothing(ctx: object) -> None:
    pass


def note(cursor: Cursor, ctx: object) -> None:
    pass


async def test_a_job_is_refused_by_a_store_that_cannot_do_what_it_needs() -> None:
    job = Job("noted", [Step("note", nothing, write=note)])
    options = RuntimeOptions(inline=True)
    async with open_runtime(PlainBackend(host_clock), options) as runtime:
        with pytest.raises(UndeclaredCapability) as caught:
            await runtime.launch(job)
    assert caught.value == UndeclaredCapability("plain", ("enlisted writes",))
    assert "has no enlisted writes, which the job needs" in str(caught.value)


def test_a_job_of_plain_tasklets_needs_only_to_be_owned() -> None:
    needed = requirements_of(compile_job(Job("plain", [Step("one", nothing)])))
    check_store(PLAIN, 1, needed)
    assert needed == Requirements(frozenset({Capability.EXECUTION_OWNERSHIP}), 1)


def test_too_few_connections_are_named_with_what_is_needed() -> None:
    needed = Requirements(frozenset(), connections=4)
    check_store(PLAIN, 4, needed)
    with pytest.raises(InsufficientPoolCapacity, match=r"needs 4 .* the runtime has 2"):
        check_store(evolve(PLAIN, capacity=9), 2, needed)


def ways(ctx: object) -> list[tuple[str, dict[str, object]]]:
    return [("only", {})]


def pooled(size: int | None) -> Job:
    parts = PartitionedStep("parts", nothing, ways, max_workers=8, pool_size=size)
    return Job("pooled", [Step("first", nothing), parts])


def test_a_job_needs_the_largest_pool_that_is_declared_in_it() -> None:
    branches = [[Step("left", nothing)], [Step("right", nothing)]]
    split = Split("both", branches, max_parallel=2, pool_size=12)
    outer = Job("outer", [JobStep("inner", pooled(9)), split])
    needed = [requirements_of(compile_job(one)) for one in (pooled(9), outer)]
    assert [one.connections for one in needed] == [9, 12]
    parent = compile_job(Job("parent", [JobStep("inner", pooled(9))]))
    assert requirements_of(parent).connections == 9


def test_a_declared_pool_is_no_part_of_the_definition() -> None:
    one, other = compile_job(pooled(None)), compile_job(pooled(9))
    assert one.plan.fingerprint == other.plan.fingerprint


@pytest.mark.parametrize("size", [8, 0, 1025, "9", True])
def test_a_pool_that_its_own_workers_exceed_is_a_mistake(size: Any) -> None:
    with pytest.raises(DefinitionError, match=r"'parts': .*pool_size"):
        compile_job(pooled(size))
    branches = [[Step("left", nothing)], [Step("right", nothing)]]
    split = Split("both", branches, max_parallel=2, pool_size=2)
    with pytest.raises(DefinitionError, match=r"at least the budget \+ 1, 3"):
        compile_job(Job("split", [Step("first", nothing), split]))


async def test_a_pool_that_is_too_small_is_refused_before_anything_is_written(
    postgres_url: str, tmp_path: Path
) -> None:
    async with open_runtime(postgres_url, RuntimeOptions(connections=7)) as runtime:
        with pytest.raises(InsufficientPoolCapacity) as caught:
            await runtime.launch(pooled(9))
        assert caught.value == InsufficientPoolCapacity(9, 8)
        assert (await runtime.list()).lines == ()
    async with open_runtime(postgres_url, RuntimeOptions(connections=8)) as runtime:
        (await runtime.launch(pooled(9))).raise_for_status()
    # A file has one connection, and in memory nobody waits for another one.
    async with open_runtime(f"sqlite:///{tmp_path / 'a.db'}") as runtime:
        with pytest.raises(InsufficientPoolCapacity, match=r"needs 9 .* has 1"):
            await runtime.launch(pooled(9))
        (await runtime.launch(pooled(None))).raise_for_status()
    async with open_runtime("memory:") as runtime:
        (await runtime.launch(pooled(65))).raise_for_status()
        with pytest.raises(InsufficientPoolCapacity):
            await runtime.launch(pooled(66), anew=True)


async def test_what_a_child_needs_its_parent_needs() -> None:
    child = Job("noted", [Step("note", nothing, write=note)])
    job = Job("outer", [JobStep("inner", Job("inner", [JobStep("down", child)]))])
    assert requirements_of(compile_job(job)) == requirements_of(compile_job(child))
    options = RuntimeOptions(inline=True)
    async with open_runtime(PlainBackend(host_clock), options) as runtime:
        with pytest.raises(UndeclaredCapability):
            await runtime.launch(job)


@pytest.mark.parametrize(
    ("needed", "connections"), [(1, 2), (3, 2), (9, 8), (65, 64), (1024, 64)]
)
def test_a_program_that_runs_one_job_may_open_what_the_job_declares(
    needed: int, connections: int
) -> None:
    assert connections_for(needed) == connections
    RuntimeOptions(connections=connections)
