"""A changed job continues what it began, through the runtime."""

import pytest
from attrs import evolve

from triolet.actors import (
    BatchStatus,
    DefinitionUnknown,
    IncompatibleDefinition,
    InvalidValue,
    Job,
    RuntimeOptions,
    Step,
    Upgraded,
    open_runtime,
)

INLINE = RuntimeOptions(inline=True)
ran: list[str] = []


async def load(ctx: object) -> None:
    ran.append("load")


async def fails(ctx: object) -> None:
    raise ValueError("no paper")


async def report(ctx: object) -> None:
    ran.append("report")


BEFORE = Job("daily", [Step("load", load), Step("report", fails)], revision="1")
AFTER = Job("daily", [Step("fetch", load), Step("report", report)], revision="2")


async def test_a_renamed_step_is_reused_and_a_failed_one_goes_on() -> None:
    ran.clear()
    async with open_runtime("memory:", INLINE) as runtime:
        await runtime.launch(BEFORE)
        with pytest.raises(IncompatibleDefinition):
            await runtime.launch(AFTER)

        first = await runtime.upgrade(
            AFTER, from_revision="1", renamed={"load": "fetch"}
        )
        again = await runtime.upgrade(
            AFTER, from_revision="1", renamed={"load": "fetch"}
        )
        done = await runtime.launch(AFTER)

    assert (first.registered, first.unchanged) == (True, False)
    assert (again.registered, again.unchanged) == (True, True)
    assert done.status is BatchStatus.COMPLETED
    assert [(one.node, one.reused) for one in done.steps] == [
        ("fetch", True),
        ("report", False),
    ]
    assert ran == ["load", "report"]


async def test_a_preview_names_what_is_left_behind_and_new() -> None:
    ran.clear()
    async with open_runtime("memory:", INLINE) as runtime:
        await runtime.launch(BEFORE)

        found = await runtime.upgrade(AFTER, from_revision="1", dry_run=True)
        with pytest.raises(IncompatibleDefinition):
            await runtime.launch(AFTER)
        done = await runtime.upgrade(AFTER, from_revision="1")
        await runtime.launch(AFTER)

    assert found == Upgraded(
        job="daily",
        revision="2",
        earlier="1",
        continued={"report": "report"},
        left_behind=("load",),
        new=("fetch",),
        registered=False,
    )
    assert done == evolve(found, registered=True)
    assert ran == ["load", "load", "report"]


async def test_a_preview_refuses_what_the_upgrade_would() -> None:
    async with open_runtime("memory:", INLINE) as runtime:
        await runtime.launch(BEFORE)
        with pytest.raises(InvalidValue, match="names 'nothing'"):
            await runtime.upgrade(
                AFTER, from_revision="1", renamed={"nothing": "fetch"}, dry_run=True
            )


async def test_only_what_was_launched_can_be_upgraded_from() -> None:
    async with open_runtime("memory:", INLINE) as runtime:
        with pytest.raises(DefinitionUnknown):
            await runtime.upgrade(AFTER, from_revision="1")
