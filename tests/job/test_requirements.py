"""What a job needs of its store is checked before anything is written."""

from collections.abc import Sequence
from typing import Any
from uuid import UUID

import pytest
from attrs import evolve

from triolet.actors import (
    InsufficientPoolCapacity,
    Job,
    JobStep,
    RuntimeOptions,
    Step,
    UndeclaredCapability,
    compile_job,
    open_runtime,
)
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


async def test_what_a_child_needs_its_parent_needs() -> None:
    child = Job("noted", [Step("note", nothing, write=note)])
    job = Job("outer", [JobStep("inner", Job("inner", [JobStep("down", child)]))])
    assert requirements_of(compile_job(job)) == requirements_of(compile_job(child))
    options = RuntimeOptions(inline=True)
    async with open_runtime(PlainBackend(host_clock), options) as runtime:
        with pytest.raises(UndeclaredCapability):
            await runtime.launch(job)
