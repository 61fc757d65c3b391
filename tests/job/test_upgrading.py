"""A changed job continues what it began, through the runtime."""

import pytest

from triolet.actors import (
    BatchStatus,
    DefinitionUnknown,
    IncompatibleDefinition,
    Job,
    RuntimeOptions,
    Step,
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

    assert (first, again) == (True, False)
    assert done.status is BatchStatus.COMPLETED
    assert [(one.node, one.reused) for one in done.steps] == [
        ("fetch", True),
        ("report", False),
    ]
    assert ran == ["load", "report"]


async def test_only_what_was_launched_can_be_upgraded_from() -> None:
    async with open_runtime("memory:", INLINE) as runtime:
        with pytest.raises(DefinitionUnknown):
            await runtime.upgrade(AFTER, from_revision="1")
