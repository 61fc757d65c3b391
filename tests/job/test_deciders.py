"""Deciders: what they see, what they may answer, and how long an answer is kept."""

import pytest
import trio

from tests.job.harness import Store, Trace, job, launch, message_of, running
from triolet.actors import (
    COMPLETE,
    STOP,
    BatchStatus,
    DeciderContext,
    Decision,
    Exit,
    FailureCategory,
    OutcomeUnknown,
    Step,
    StepContext,
)
from triolet.storage.model.execution import Decision as Decided
from triolet.storage.model.execution import NodeTarget, Terminal, TransitionKind


async def answer_async(ctx: DeciderContext) -> str:
    await trio.lowlevel.checkpoint()
    return "GO"


@pytest.mark.parametrize(
    "decider",
    [answer_async, lambda ctx: "GO", lambda ctx: Exit("GO"), lambda ctx: "G0"],
    ids=["async", "code", "exit", "pattern"],
)
async def test_the_answer_chooses_the_way(
    store: Store, trace: Trace, decider: object
) -> None:
    choice = Decision("way", decider, then={"GO": "left", "G?": "left", "*": COMPLETE})  # type: ignore[arg-type]  # mypy joins the kinds to object
    report = await launch(store, job(choice, trace.step("left")))
    assert report.status is BatchStatus.COMPLETED
    assert trace.calls == ["left"]


async def test_the_transition_is_durable_before_its_target_runs(store: Store) -> None:
    seen: list[Decided] = []

    async def look(ctx: StepContext) -> None:
        seen.extend(store.dump().decisions)

    choice = Decision("way", lambda ctx: "GO", then={"GO": "look"})
    await launch(store, job(choice, Step("look", look)))
    (made,) = seen
    assert (made.source, made.outcome) == ("way", "GO")
    assert (made.kind, made.target) == (TransitionKind.DECIDER, NodeTarget("look"))


async def test_what_led_to_a_decision_is_durable_before_the_decider_is_asked(
    store: Store, trace: Trace
) -> None:
    seen: list[object] = []

    def decide(ctx: DeciderContext) -> str:
        seen.extend(store.statuses)
        return "GO"

    choice = Decision("way", decide, then={"GO": COMPLETE})
    await launch(store, job(trace.step("work"), choice))
    assert seen == [("work", "COMPLETED")]


async def test_a_decider_sees_the_step_before_it_and_the_launch_parameters(
    store: Store,
) -> None:
    seen: list[object] = []

    def work(ctx: StepContext) -> Exit:
        ctx.state["rows"] = 17
        return Exit("PART")

    def decide(ctx: DeciderContext) -> str:
        before = ctx.preceding
        assert before is not None
        seen.append((before.node, before.status, before.exit_code, before.state))
        seen.append((ctx.parameters["day"], ctx.attempt, ctx.state_of("work")))
        return "GO"

    choice = Decision("way", decide, then={"GO": COMPLETE})
    await launch(store, job(Step("work", work), choice), {"day": "mon"})
    assert seen == [
        ("work", BatchStatus.COMPLETED, "PART", {"rows": 17}),
        ("mon", 1, {"rows": 17}),
    ]


async def test_a_decision_at_the_beginning_has_no_step_before_it(store: Store) -> None:
    seen: list[object] = []

    def decide(ctx: DeciderContext) -> str:
        seen.append(ctx.preceding)
        return "GO"

    first = Decision("one", decide, then={"GO": "two"})
    second = Decision("two", decide, then={"GO": COMPLETE})
    await launch(store, job(first, second))
    assert seen == [None, None]


async def test_a_decider_that_raises_fails_the_job_without_a_transition(
    store: Store, trace: Trace
) -> None:
    def decide(ctx: DeciderContext) -> str:
        raise ValueError("no idea")

    choice = Decision("way", decide, then={"*": "next"})
    report = await launch(store, job(trace.step("a"), choice, trace.step("next")))
    assert message_of(report) == "no idea"
    assert report.failure is not None
    assert (report.failure.where, report.failure.code) == ("way", "decider_failed")
    assert report.failure.category is FailureCategory.USER_COMPONENT
    assert trace.calls == ["a"]
    assert store.dump().decisions == ()


async def test_a_decider_of_unknown_outcome_is_just_a_failing_one(store: Store) -> None:
    def decide(ctx: DeciderContext) -> str:
        raise OutcomeUnknown("a decider has no effects")

    report = await launch(store, job(Decision("way", decide, then={"*": COMPLETE})))
    assert message_of(report) == "a decider has no effects"


@pytest.mark.parametrize(
    ("returned", "reason"),
    [
        (None, "decider 'way' returned a NoneType; return an exit code or Exit"),
        (True, "returned a bool"),
        (7, "returned an int"),
        ("", "the exit code must not be empty"),
        ("x" * 65, "the exit code has 65 bytes, at most 64 are allowed"),
        ("a\nb", "control character"),
    ],
)
async def test_an_answer_that_is_no_exit_code_fails_the_job(
    store: Store, returned: object, reason: str
) -> None:
    choice = Decision("way", lambda ctx: returned, then={"*": COMPLETE})
    report = await launch(store, job(choice))
    assert reason in message_of(report)
    assert report.failure is not None
    assert report.failure.where == "way"


async def test_an_answer_that_no_pattern_matches_fails_the_job_and_names_the_patterns(
    store: Store,
) -> None:
    choice = Decision("way", lambda ctx: "MAYBE", then={"NO": COMPLETE, "Y*": COMPLETE})
    report = await launch(store, job(choice))
    assert message_of(report) == (
        "'way' ended with exit code 'MAYBE'; it has rules for 'NO' and 'Y*'"
    )
    assert report.failure is not None
    assert report.failure.category is FailureCategory.INVALID_DEFINITION


async def test_a_restart_replays_the_recorded_answer(
    store: Store, trace: Trace
) -> None:
    asked = []

    def decide(ctx: DeciderContext) -> str:
        asked.append(ctx.attempt)
        return "LEFT" if len(asked) == 1 else "RIGHT"

    nodes = (
        trace.step("work"),
        Decision("way", decide, then={"LEFT": "left", "RIGHT": "right"}),
        Step("left", trace.failing("left", until=3), then={"*": COMPLETE}),
        trace.step("right"),
    )
    reports = [await launch(store, job(*nodes)) for _ in range(3)]
    assert [report.status.value for report in reports] == [
        "FAILED",
        "FAILED",
        "COMPLETED",
    ]
    assert asked == [1]
    assert trace.calls == ["work", "left", "left", "left"]
    first, *later = [
        made for made in store.dump().decisions if made.kind is TransitionKind.DECIDER
    ]
    assert first.reused is None
    assert all(made.reused is not None for made in later)
    assert {made.outcome for made in (first, *later)} == {"LEFT"}


async def test_a_decider_is_asked_again_when_the_step_before_it_ran_again(
    store: Store, trace: Trace
) -> None:
    asked = []

    def decide(ctx: DeciderContext) -> str:
        asked.append(ctx.attempt)
        return "GO"

    nodes = (
        trace.step("work", allow_start_if_complete=True),
        Decision("way", decide, then={"GO": "next"}),
        Step("next", trace.failing("next", until=2)),
    )
    for _ in range(2):
        await launch(store, job(*nodes))
    assert asked == [1, 2]


async def test_an_answer_that_led_to_a_stop_is_not_replayed(
    store: Store, trace: Trace
) -> None:
    answers = iter(["WAIT", "WAIT", "GO"])
    choice = Decision("way", lambda ctx: next(answers), then={"WAIT": STOP, "GO": "z"})
    waiting = job(trace.step("a"), choice, trace.step("z"))
    reports = [await launch(store, waiting) for _ in range(3)]
    assert [report.status.value for report in reports] == [
        "STOPPED",
        "STOPPED",
        "COMPLETED",
    ]
    assert trace.calls == ["a", "z"]
    targets = [
        made.target
        for made in store.dump().decisions
        if made.kind is TransitionKind.DECIDER
    ]
    assert targets == [Terminal.STOP, Terminal.STOP, NodeTarget("z")]


async def test_a_stop_ends_a_decider_that_waits(store: Store, trace: Trace) -> None:
    async def decide(ctx: DeciderContext) -> str:
        runtime.stop()
        with trio.fail_after(5):
            await trio.sleep_forever()

    async with running(store) as runtime:
        choice = Decision("way", decide, then={"*": "next"})
        report = await runtime.launch(job(trace.step("a"), choice, trace.step("next")))
    assert report.status is BatchStatus.STOPPED
    assert trace.calls == ["a"]
    assert store.dump().decisions == ()


async def test_a_stop_that_comes_while_a_decider_answers_takes_effect_after_it(
    store: Store, trace: Trace
) -> None:
    asked = []

    def decide(ctx: DeciderContext) -> str:
        asked.append(ctx.attempt)
        if ctx.attempt == 1:
            runtime.stop(ctx.execution.execution_id)
        return "GO"

    async with running(store) as runtime:
        choice = job(Decision("way", decide, then={"GO": "next"}), trace.step("next"))
        report = await runtime.launch(choice)
        assert report.status is BatchStatus.STOPPED
        assert trace.calls == []
        report = await runtime.launch(choice)
    assert report.status is BatchStatus.COMPLETED
    assert asked == [1]
