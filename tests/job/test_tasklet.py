"""Tasklets: how they are called, what they may return, and the state they keep."""

import functools
import threading
from collections.abc import Callable

import pytest
import trio

from tests.job.harness import (
    Store,
    job,
    launch,
    message_of,
    running,
    single,
)
from triolet.actors import (
    COMPLETE,
    BatchStatus,
    Cursor,
    Exit,
    FailureCategory,
    OutcomeUnknown,
    OutcomeUnresolved,
    Parameter,
    Step,
    StepContext,
)


async def async_tasklet(ctx: StepContext) -> None:
    await trio.lowlevel.checkpoint()
    ctx.state["ran"] = True


def plain_tasklet(ctx: StepContext) -> None:
    ctx.state["ran"] = True


def prefixed(prefix: str, ctx: StepContext) -> None:
    ctx.state["ran"] = bool(prefix)


class AsyncObject:
    async def __call__(self, ctx: StepContext) -> None:
        ctx.state["ran"] = True


class PlainObject:
    def __call__(self, ctx: StepContext) -> None:
        ctx.state["ran"] = True


@pytest.mark.parametrize(
    "work",
    [
        async_tasklet,
        plain_tasklet,
        functools.partial(async_tasklet),
        functools.partial(prefixed, "x"),
        lambda ctx: ctx.state.update(ran=True),
        lambda ctx: async_tasklet(ctx),
        AsyncObject(),
        PlainObject(),
    ],
    ids=[
        "async",
        "plain",
        "partial async",
        "partial plain",
        "lambda",
        "lambda async",
        "async object",
        "plain object",
    ],
)
@pytest.mark.parametrize("inline", [True, False])
async def test_any_callable_is_a_tasklet(
    store: Store, work: Callable[..., object], inline: bool
) -> None:
    def check(ctx: StepContext) -> None:
        assert ctx.state_of("work") == {"ran": True}

    report = await launch(
        store, job(Step("work", work), Step("check", check)), inline=inline
    )
    assert report.status is BatchStatus.COMPLETED


async def test_a_plain_tasklet_runs_in_a_thread_and_an_async_one_on_the_loop(
    store: Store,
) -> None:
    threads: dict[str, int] = {}

    def plain(ctx: StepContext) -> None:
        threads["plain"] = threading.get_ident()

    async def on_loop(ctx: StepContext) -> None:
        threads["async"] = threading.get_ident()

    await launch(store, job(Step("a", plain), Step("b", on_loop)), inline=False)
    assert threads["async"] == threading.get_ident()
    assert threads["plain"] != threading.get_ident()


async def test_none_means_completed(store: Store) -> None:
    report = await launch(store, single(lambda ctx: None))
    step = report.step("work")
    assert (step.status, step.exit_code) == (BatchStatus.COMPLETED, "COMPLETED")


async def test_an_exit_code_of_its_own_still_means_completed(store: Store) -> None:
    def partly(ctx: StepContext) -> Exit:
        return Exit("PARTLY")

    report = await launch(store, job(Step("work", partly, then={"PARTLY": COMPLETE})))
    step = report.step("work")
    assert (step.status, step.exit_code) == (BatchStatus.COMPLETED, "PARTLY")
    assert (report.status, report.exit_code) == (BatchStatus.COMPLETED, "COMPLETED")


@pytest.mark.parametrize(
    ("returned", "kind"),
    [
        ("COMPLETED", "a str"),
        (True, "a bool"),
        (0, "an int"),
        ([], "a list"),
        (Exit, "a type"),
    ],
)
async def test_any_other_return_value_is_a_failure_that_names_the_step(
    store: Store, returned: object, kind: str
) -> None:
    report = await launch(store, single(lambda ctx: returned))
    assert message_of(report) == (
        f"step 'work' returned {kind}; return None or Exit(code)"
    )
    assert report.failure is not None
    assert report.failure.category is FailureCategory.USER_COMPONENT
    assert store.statuses == [("work", "FAILED")]


async def test_an_exception_fails_step_and_job_and_is_stored(store: Store) -> None:
    def broken(ctx: StepContext) -> None:
        raise KeyError("day")

    report = await launch(store, single(broken))
    assert report.status is BatchStatus.FAILED
    (step,) = store.steps
    assert step.failure is not None
    assert (step.failure.where, step.failure.type) == ("work", "KeyError")
    assert step.failure.message == "'day'"
    assert step.ended_at is not None
    (execution,) = store.executions
    assert execution.failure is not None
    assert execution.failure.message == "'day'"
    assert execution.ended_at is not None


async def test_an_unknown_outcome_ends_step_and_job_unknown_and_blocks_a_restart(
    store: Store,
) -> None:
    def pay(ctx: StepContext) -> None:
        raise OutcomeUnknown("did the bank book it?")

    async with running(store) as runtime:
        report = await runtime.launch(single(pay))
        assert report.status is BatchStatus.UNKNOWN
        assert store.statuses == [("work", "UNKNOWN")]
        with pytest.raises(OutcomeUnresolved):
            await runtime.launch(single(pay))
    (execution,) = store.executions
    assert execution.status is BatchStatus.UNKNOWN
    assert execution.failure is not None
    assert execution.failure.category is FailureCategory.UNKNOWN_COMMIT
    assert execution.failure.message == "did the bank book it?"


async def test_secret_parameters_do_not_reach_the_stored_message(store: Store) -> None:
    def leak(ctx: StepContext) -> None:
        first, second = ctx.parameters["key"], ctx.parameters["long_key"]
        raise ValueError(f"cannot log in with {second} or {first}")

    declared = [
        Parameter("key", str, secret=True),
        Parameter("long_key", str, secret=True),
    ]
    report = await launch(
        store,
        job(Step("work", leak), parameters=declared),
        {"key": "hunter", "long_key": "hunter2"},
    )
    assert message_of(report) == "cannot log in with *** or ***"


# Enlisted rows


async def test_rows_are_written_in_the_commit_of_the_step(store: Store) -> None:
    def write(cursor: Cursor, ctx: StepContext) -> None:
        cursor.execute("CREATE TABLE rows (x)")
        cursor.execute("INSERT INTO rows VALUES (?)", (ctx.state["sum"],))

    def work(ctx: StepContext) -> None:
        ctx.state["sum"] = 17

    report = await launch(store, job(Step("work", work, write=write)))
    assert report.status is BatchStatus.COMPLETED
    assert store.rows() == [17]


async def test_a_failing_write_fails_its_step_without_rows_and_without_state(
    store: Store,
) -> None:
    seen: list[object] = []

    def write(cursor: Cursor, ctx: StepContext) -> None:
        cursor.execute("CREATE TABLE rows (x)")
        raise LookupError("no such account")

    def work(ctx: StepContext) -> None:
        ctx.state["sum"] = 17

    def look(ctx: StepContext) -> None:
        seen.append(ctx.state_of("work"))

    routed = Step("work", work, write=write, then={"FAILED": "look", "*": "look"})
    report = await launch(store, job(routed, Step("look", look)))
    assert report.status is BatchStatus.COMPLETED
    assert store.statuses == [("work", "FAILED"), ("look", "COMPLETED")]
    failure = store.steps[0].failure
    assert failure is not None
    assert (failure.where, failure.code) == ("work", "write_failed")
    assert failure.message == "no such account"
    assert seen == [{}]
    tables = store.inner.business.execute("SELECT name FROM sqlite_master")
    assert tables.fetchall() == []


async def test_a_failing_write_names_its_own_step_although_later_ones_were_reused(
    store: Store,
) -> None:
    attempts = []

    def write(cursor: Cursor, ctx: StepContext) -> None:
        if ctx.attempt > 1:
            raise LookupError("no such account")

    def fail(ctx: StepContext) -> None:
        attempts.append(ctx.attempt)
        raise ValueError("broken")

    nodes = (
        Step("pay", async_tasklet, write=write, allow_start_if_complete=True),
        Step("kept", async_tasklet),
        Step("fail", fail),
    )
    await launch(store, job(*nodes))
    report = await launch(store, job(*nodes))
    assert attempts == [1]
    assert report.failure is not None
    assert report.failure.where == "pay"
    assert [(step.node, step.status.value) for step in report.steps] == [
        ("pay", "FAILED")
    ]


async def test_a_write_of_unknown_outcome_ends_step_and_job_unknown(
    store: Store,
) -> None:
    def write(cursor: Cursor, ctx: StepContext) -> None:
        raise OutcomeUnknown("the trigger may have sent a mail")

    report = await launch(store, job(Step("work", async_tasklet, write=write)))
    assert report.status is BatchStatus.UNKNOWN
    assert store.statuses == [("work", "UNKNOWN")]


# Identity


async def test_the_idempotency_key_is_equal_over_attempts_and_unlike_any_other(
    store: Store,
) -> None:
    keys: dict[str, list[str]] = {}

    def work(ctx: StepContext) -> None:
        keys.setdefault(ctx.node, []).append(ctx.idempotency_key)
        if ctx.node == "b" and ctx.attempt == 1:
            raise ValueError("broken")

    nodes = Step("a", work, allow_start_if_complete=True), Step("b", work)
    for day in ("mon", "mon", "tue", "tue"):
        await launch(store, job(*nodes), {"day": day})
    assert [len(set(keys[node])) for node in ("a", "b")] == [2, 2]
    assert keys["a"][0] == keys["a"][1]
    assert keys["b"][0] == keys["b"][1]
    assert not set(keys["a"]) & set(keys["b"])


async def test_the_context_tells_who_and_where_the_step_is(store: Store) -> None:
    facts = []

    def work(ctx: StepContext) -> None:
        facts.append(
            (
                ctx.node,
                ctx.parameters["day"],
                ctx.instance_id,
                ctx.execution_id,
                ctx.attempt,
                ctx.step_attempt,
            )
        )
        if ctx.attempt < 3:
            raise ValueError("broken")

    for _ in range(3):
        await launch(store, single(work), {"day": "mon"})
    assert facts == [
        ("work", "mon", 1, 1, 1, 1),
        ("work", "mon", 1, 2, 2, 2),
        ("work", "mon", 1, 3, 3, 3),
    ]
