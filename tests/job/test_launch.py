"""Launching: what is checked, in which order, and who may have the instance."""

from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
import trio
import trio.testing
from attrs import evolve

from tests.job.components import copying
from tests.job.harness import (
    Store,
    Trace,
    job,
    launch,
    refusal,
    running,
    single,
)
from tests.storage.backends import abandon
from triolet.actors import (
    AlreadyRunning,
    BatchStatus,
    ComponentsInUse,
    DefinitionDrift,
    DefinitionError,
    IncompatibleDefinition,
    InstanceAbandoned,
    InstanceComplete,
    InvalidName,
    InvalidParameter,
    InvalidValue,
    Job,
    OutcomeUnknown,
    OutcomeUnresolved,
    Parameter,
    RuntimeOptions,
    RunUnknown,
    ShuttingDown,
    Step,
    StepContext,
    compile_job,
    open_runtime,
)
from triolet.actors.kernel.liveness import this_process
from triolet.storage.model.errors import TrioletError

JOB = single(lambda ctx: None)
BROKEN = job(Step("a", lambda ctx: None, then={"*": "nowhere"}))


# Preconditions


async def test_a_runtime_that_shuts_down_refuses_before_it_looks_at_the_definition(
    store: Store,
) -> None:
    async with running(store) as runtime:
        runtime.stop()
        with pytest.raises(ShuttingDown):
            await runtime.launch(BROKEN, {"\0": object()})


async def test_the_definition_is_checked_before_the_parameters(store: Store) -> None:
    error = await refusal(store, BROKEN, {"\0": object()})
    assert isinstance(error, DefinitionError)


async def test_the_parameters_are_checked_before_the_store_is_asked(
    store: Store, trace: Trace
) -> None:
    await launch(store, job(trace.step("a")))
    asked = len(store.commands)
    error = await refusal(store, job(trace.step("a")), {"x": 1.5})
    assert isinstance(error, InvalidParameter)
    assert len(store.commands) == asked


@pytest.mark.parametrize(
    ("given", "kind"),
    [
        ({"x": None}, InvalidParameter),
        ({"x": 1 << 64}, InvalidParameter),
        ({"x": "a\0b"}, InvalidParameter),
        ({"x": "\ud800"}, InvalidParameter),
        ({"x": "y" * 65_537}, InvalidParameter),
        ({"triolet.run": 1}, InvalidParameter),
        ({"": 1}, InvalidName),
        ({" x": 1}, InvalidName),
        ({"a\nb": 1}, InvalidName),
        ({7: 1}, InvalidName),
    ],
    ids=repr,
)
async def test_a_bad_parameter_is_refused_before_anything_is_written(
    store: Store, trace: Trace, given: dict[str, object], kind: type[TrioletError]
) -> None:
    assert type(await refusal(store, job(trace.step("a")), given)) is kind
    assert trace.calls == []


async def test_a_parameter_that_is_given_twice_is_refused(
    store: Store, trace: Trace
) -> None:
    async with running(store) as runtime:
        with pytest.raises(InvalidParameter, match="parameter 'day' is given twice"):
            await runtime.launch(job(trace.step("a")), {"day": "mon"}, day="mon")


async def test_declared_parameters_refuse_strangers_and_fill_in_defaults(
    store: Store,
) -> None:
    seen: list[object] = []

    def work(ctx: StepContext) -> None:
        seen.append(dict(ctx.parameters))

    declared = job(
        Step("work", work),
        parameters=[Parameter("day", str), Parameter("limit", int, default=10)],
    )
    assert "dya" in str(await refusal(store, declared, {"dya": "mon"}))
    assert "required" in str(await refusal(store, declared, {}))
    assert "must be str" in str(await refusal(store, declared, {"day": 7}))
    await launch(store, declared, {"day": "mon"})
    assert seen == [{"day": "mon", "limit": 10}]


async def test_named_parameters_and_a_mapping_mean_the_same(
    store: Store, trace: Trace
) -> None:
    async with running(store) as runtime:
        await runtime.launch(job(trace.step("a")), {"day": "mon"}, limit=3)
        with pytest.raises(InstanceComplete):
            await runtime.launch(job(trace.step("a")), {"limit": 3, "day": "mon"})


async def test_a_job_may_be_compiled_once_and_launched_often(
    store: Store, trace: Trace
) -> None:
    compiled = compile_job(job(trace.step("a")))
    async with running(store) as runtime:
        for day in ("mon", "tue"):
            report = await runtime.launch(compiled, day=day)
            assert report.status is BatchStatus.COMPLETED
    assert trace.calls == ["a", "a"]


# Refusals by the store


async def test_a_completed_instance_is_not_run_again(
    store: Store, trace: Trace
) -> None:
    await launch(store, job(trace.step("a")))
    error = await refusal(store, job(trace.step("a")))
    assert isinstance(error, InstanceComplete)
    assert error.execution_id == 1
    assert "2025-12-01 12:00:00 UTC (execution 1)" in str(error)
    assert "--new' (anew=True)" in str(error)
    assert trace.calls == ["a"]


async def test_an_abandoned_instance_is_not_run_again(
    store: Store, trace: Trace
) -> None:
    await launch(store, job(Step("a", trace.failing("a"))))
    abandon(store.inner, 1)
    error = await refusal(store, job(Step("a", trace.failing("a"))))
    assert isinstance(error, InstanceAbandoned)


async def test_an_instance_of_unknown_outcome_is_not_run_again(
    store: Store,
) -> None:
    def pay(ctx: StepContext) -> None:
        raise OutcomeUnknown("did the bank book it?")

    await launch(store, single(pay))
    error = await refusal(store, single(pay))
    assert isinstance(error, OutcomeUnresolved)
    assert error.execution_id == 1


async def test_a_changed_definition_is_refused_and_says_what_changed(
    store: Store, trace: Trace
) -> None:
    failing = Step("a", trace.failing("a"))
    await launch(store, job(failing))
    error = await refusal(store, job(evolve(failing, revision="2"), trace.step("b")))
    assert isinstance(error, IncompatibleDefinition)
    assert error.execution_id == 1
    assert error.changes == (
        "step 'a': revision '1' -> '2'",
        "step 'a': '*' goes to 'b' instead of COMPLETE",
        "node 'b' was added",
    )
    assert "revision '1' -> '2'" in str(error)
    report = await launch(
        store, job(evolve(failing, revision="2"), trace.step("b")), anew=True
    )
    assert report.run == 1


async def test_a_label_that_named_another_definition_is_refused(
    store: Store, trace: Trace
) -> None:
    await launch(store, job(trace.step("a"), revision="7"))
    changed = job(trace.step("a"), trace.step("b"), revision="7")
    error = await refusal(store, changed, {"day": "mon"})
    assert isinstance(error, DefinitionDrift)
    assert error.revision == "7"


async def test_an_instance_that_runs_here_is_not_launched_twice(
    store: Store, trace: Trace
) -> None:
    refused: list[BaseException] = []

    async def work(ctx: StepContext) -> None:
        before = store.dump()
        try:
            await runtime.launch(single(work))
        except AlreadyRunning as exc:
            refused.append(exc)
        assert store.dump() == before

    async with running(store) as runtime:
        report = await runtime.launch(single(work))
    assert report.status is BatchStatus.COMPLETED
    (error,) = refused
    assert isinstance(error, AlreadyRunning)
    assert error.execution_id == 1
    assert error.owner == this_process()
    assert f"process {this_process().pid}" in str(error)


async def test_an_instance_that_runs_in_another_runtime_of_a_live_process_is_refused(
    store: Store,
) -> None:
    refused: list[TrioletError] = []

    async def work(ctx: StepContext) -> None:
        refused.append(await refusal(store, single(work)))

    report = await launch(store, single(work))
    assert report.status is BatchStatus.COMPLETED
    assert [type(error) for error in refused] == [AlreadyRunning]


# Numbering


async def test_launching_anew_numbers_the_runs(store: Store, trace: Trace) -> None:
    runs = [
        (await launch(store, job(trace.step("a")), anew=True)).run for _ in range(3)
    ]
    assert runs == [1, 2, 3]
    assert trace.calls == ["a"] * 3


async def test_a_run_is_seen_by_the_job_as_a_parameter(store: Store) -> None:
    seen: list[object] = []

    def work(ctx: StepContext) -> None:
        seen.append(dict(ctx.parameters))

    report = await launch(store, single(work), {"day": "mon"}, anew=True)
    assert seen == [{"day": "mon", "triolet.run": 1}]
    assert report.parameters.values() == seen[0]


# Runtimes


async def test_two_runtimes_on_two_stores_do_not_disturb_each_other(
    trace: Trace,
) -> None:
    """C176."""
    stores = Store(), Store()
    statuses: list[str] = []

    async def work(ctx: StepContext) -> None:
        ctx.state["day"] = ctx.parameters["day"]
        await trio.lowlevel.checkpoint()

    async with running(stores[0]) as one, running(stores[1]) as two:

        async def run(runtime: Any, day: str) -> None:
            report = await runtime.launch(single(work), day=day)
            statuses.append(report.status.value)

        async with trio.open_nursery() as nursery:
            nursery.start_soon(run, one, "mon")
            nursery.start_soon(run, two, "tue")
            await trio.lowlevel.checkpoint()
            one.stop(99)
    assert statuses == ["COMPLETED", "COMPLETED"]
    contexts = [store.steps[0].context or "" for store in stores]
    assert ["mon" in contexts[0], "tue" in contexts[1]] == [True, True]


async def test_a_runtime_opens_a_store_by_its_url_and_closes_it(
    trace: Trace, tmp_path: Any
) -> None:
    for _ in range(2):
        async with open_runtime(f"sqlite:///{tmp_path}/store.db") as runtime:
            await runtime.launch(job(Step("a", trace.failing("a", until=2))))
    async with open_runtime(f"sqlite:///{tmp_path}/store.db") as runtime:
        page = await runtime.list()
        detail = await runtime.show(2)
    assert [line.execution.status.value for line in page.lines] == [
        "COMPLETED",
        "FAILED",
    ]
    assert detail.execution.restart_of == 1


@pytest.mark.parametrize("url", ["nonsense", "sqlite://", "mysql://x"])
async def test_a_url_of_no_store_is_refused(url: str) -> None:
    with pytest.raises(InvalidValue, match="the store URL"):
        async with open_runtime(url):
            raise AssertionError("it was opened")


@pytest.mark.parametrize(
    "make",
    [
        lambda: RuntimeOptions(lease=0.5),
        lambda: RuntimeOptions(lease=3601),
        lambda: RuntimeOptions(threads_max=0),
    ],
)
def test_options_out_of_their_bounds_are_refused(
    make: Callable[[], RuntimeOptions],
) -> None:
    with pytest.raises(InvalidValue):
        make()


async def test_two_launches_at_once_do_not_share_a_reader(store: Store) -> None:
    started, go_on = trio.Event(), trio.Event()

    async def wait(ctx: StepContext) -> None:
        started.set()
        await go_on.wait()

    chunk, _, _ = copying([1, 2, 3])
    both = Job("copy", [Step("wait", wait), Step("copy", chunk)])
    async with running(store) as runtime, trio.open_nursery() as nursery:
        nursery.start_soon(partial(runtime.launch, both, n=1))
        await started.wait()
        with pytest.raises(ComponentsInUse, match="build the job anew"):
            await runtime.launch(both, n=2)
        assert len((await runtime.list()).lines) == 1
        go_on.set()
    async with running(store) as runtime:
        assert (await runtime.launch(both, n=2)).status is BatchStatus.COMPLETED


async def test_a_run_that_was_launched_anew_is_continued_by_its_number(
    store: Store,
) -> None:
    calls: list[str] = []

    def first(ctx: StepContext) -> None:
        calls.append("first")

    def second(ctx: StepContext) -> None:
        calls.append("second")
        if calls.count("second") == 1:
            raise ValueError("not yet")

    both = Job("numbered", [Step("first", first), Step("second", second)])
    async with running(store) as runtime:
        begun = await runtime.launch(both, anew=True, day="x")
        ended = await runtime.launch(both, continue_run=begun.run, day="x")
    assert (begun.run, ended.run, ended.restart_of) == (1, 1, begun.execution_id)
    assert ended.status is BatchStatus.COMPLETED
    assert calls == ["first", "second", "second"]


async def test_a_run_that_never_was_is_refused_and_nothing_is_written(
    store: Store,
) -> None:
    async with running(store) as runtime:
        with pytest.raises(RunUnknown):
            await runtime.launch(job(Step("a", lambda ctx: None)), continue_run=7)
        assert (await runtime.list()).lines == ()


@pytest.mark.parametrize("number", [0, -1, 1 << 63, True, "1"])
async def test_what_is_no_number_of_a_run_is_refused(store: Store, number: Any) -> None:
    async with running(store) as runtime:
        with pytest.raises(InvalidValue, match="continue_run must be a whole number"):
            await runtime.launch(job(Step("a", lambda ctx: None)), continue_run=number)


async def test_a_launch_is_anew_or_continues_a_run_not_both(store: Store) -> None:
    async with running(store) as runtime:
        with pytest.raises(InvalidValue, match="exclude each other"):
            await runtime.launch(
                job(Step("a", lambda ctx: None)), anew=True, continue_run=1
            )


async def test_user_code_cannot_change_the_parameters_of_later_steps(
    store: Store,
) -> None:
    def change(ctx: StepContext) -> None:
        ctx.parameters["day"] = "y"  # type: ignore[index]  # what is to be refused

    async with running(store) as runtime:
        report = await runtime.launch(job(Step("a", change)), day="x")
    assert report.status is BatchStatus.FAILED


async def test_a_sqlite_store_that_keeps_nothing_is_refused() -> None:
    with pytest.raises(InvalidValue, match="write memory:"):
        async with open_runtime("sqlite:///:memory:"):
            pass


# What to do about a start limit


async def test_a_higher_start_limit_is_taken_by_a_new_instance_only(
    store: Store, trace: Trace
) -> None:
    failing = trace.failing("work")
    await launch(store, single(failing, start_limit=1))
    limited = await launch(store, single(failing, start_limit=1))
    assert limited.failure is not None
    assert "run the job anew with 'triolet run ... --new" in (
        limited.failure.message or ""
    )
    higher = single(trace.work("work"), start_limit=2)
    assert isinstance(await refusal(store, higher), IncompatibleDefinition)
    report = await launch(store, higher, anew=True)
    assert report.status is BatchStatus.COMPLETED


# Arguments of another type


@pytest.mark.parametrize(
    ("ask", "what"),
    [
        (lambda runtime: runtime.launch("x"), "the job must be a Job, not str"),
        (lambda runtime: runtime.launch(None), "the job must be a Job, not NoneType"),
        (lambda runtime: runtime.launch(JOB, 5), "parameters, which"),
        (lambda runtime: runtime.launch(JOB, []), "parameters, which"),
        (lambda runtime: runtime.launch(JOB, continue_run="1"), "continue_run must be"),
        (lambda runtime: runtime.show("1"), "the number of an execution must be"),
        (lambda runtime: runtime.list(limit="x"), "limit must be"),
        (lambda runtime: runtime.list(before="x"), "before must be"),
        (lambda runtime: runtime.list(status="FAILED"), "status must be"),
        (lambda runtime: runtime.list(job=5), "job must be"),
    ],
)
async def test_an_argument_of_another_type_is_refused_by_name(
    store: Store, ask: Callable[[Any], Any], what: str
) -> None:
    async with running(store) as runtime:
        with pytest.raises(InvalidValue, match=f"^{what}"):
            await ask(runtime)
    assert store.executions == ()


@pytest.mark.parametrize(
    ("options", "what"),
    [
        ({"lease": "x"}, "the option lease must be of type int or float, not str"),
        ({"lease": True}, "the option lease must be of type int or float, not bool"),
        ({"events": 5}, "the option events must be a function, not int"),
        ({"threads_max": 1.5}, "the option threads_max must be of type int, not float"),
        (
            {"store_error_text": "no"},
            "the option store_error_text must be of type bool",
        ),
        ({"inline": 1}, "the option inline must be of type bool, not int"),
        ({"patience": None}, "the option patience must be of type int or float"),
        ({"patience": -1}, "the option patience must be at least 0 seconds"),
        ({"ask_deadline": float("nan")}, "the option ask_deadline must be at least 0"),
        ({"random": 7}, "the option random must be of type Random, not int"),
    ],
)
def test_an_option_of_another_type_is_refused_by_name(
    options: dict[str, Any], what: str
) -> None:
    with pytest.raises(InvalidValue, match=f"^{what}"):
        RuntimeOptions(**options)


@pytest.mark.parametrize(
    ("arguments", "what"),
    [
        ((5,), "the store must be a URL like sqlite:///triolet.db, not int"),
        ((None,), "the store must be a URL"),
        (("memory:", 5), "the second argument of open_runtime must be of type"),
    ],
)
async def test_a_runtime_is_not_opened_on_something_else(
    arguments: tuple[Any, ...], what: str
) -> None:
    with pytest.raises(InvalidValue, match=f"^{what}"):
        async with open_runtime(*arguments):
            pass
