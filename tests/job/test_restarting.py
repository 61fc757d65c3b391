"""Restarting an execution by its number: which parameters it has."""

from typing import Any

import pytest

from tests.job.harness import Store, job, launch, running
from triolet.actors import (
    BatchStatus,
    ExecutionNotFound,
    InstanceComplete,
    InvalidParameter,
    InvalidValue,
    Job,
    LaunchReport,
    OtherInstance,
    Parameter,
    Step,
    StepContext,
)

SEEN = list[dict[str, object]]
DECLARED = (
    Parameter("day", str),
    Parameter("limit", int, default=5),
    Parameter("note", str, default="none", identifying=False),
    Parameter("key", str, secret=True),
)


def patient(seen: SEEN, parameters: Any = DECLARED, until: int = 2) -> Job:
    def work(ctx: StepContext) -> None:
        seen.append(dict(ctx.parameters))
        if ctx.attempt < until:
            raise ValueError("not yet")

    return job(Step("a", work), parameters=parameters)


async def restart(store: Store, patient: Job, **overrides: Any) -> LaunchReport:
    async with running(store) as runtime:
        return await runtime.restart(1, patient, overrides)


async def test_the_parameters_of_the_execution_come_back(store: Store) -> None:
    seen: SEEN = []
    given = {"day": "monday", "limit": 7, "note": "first", "key": "hush"}
    await launch(store, patient(seen), given)

    report = await restart(store, patient(seen), key="hush")

    assert report.status is BatchStatus.COMPLETED
    assert report.restart_of == 1
    assert seen == [given, given]
    assert report.reused == ("day", "limit", "note")


async def test_what_is_not_identifying_may_be_given_anew(store: Store) -> None:
    seen: SEEN = []
    await launch(store, patient(seen), {"day": "monday", "key": "hush"})

    report = await restart(store, patient(seen), key="hush", note="second")

    assert seen[1]["note"] == "second"
    assert report.reused == ("day", "limit")


async def test_a_secret_has_to_be_given_again(store: Store) -> None:
    await launch(store, patient([]), {"day": "monday", "key": "hush"})

    with pytest.raises(InvalidParameter, match="'key' is secret, and so it is not"):
        await restart(store, patient([]))
    with pytest.raises(OtherInstance):
        await restart(store, patient([]), key="loud")
    assert len(store.executions) == 1


async def test_what_is_identifying_stays(store: Store) -> None:
    await launch(store, patient([]), {"day": "monday", "key": "hush"})

    with pytest.raises(InvalidParameter, match="'day' is identifying"):
        await restart(store, patient([]), key="hush", day="tuesday")


async def test_an_undeclared_parameter_is_identifying(store: Store) -> None:
    seen: SEEN = []
    await launch(store, patient(seen, ()), {"day": "monday", "full": True})

    with pytest.raises(InvalidParameter, match="'note' is identifying"):
        await restart(store, patient(seen, ()), note="x")
    report = await restart(store, patient(seen, ()))

    assert report.status is BatchStatus.COMPLETED
    assert seen == [{"day": "monday", "full": True}] * 2


async def test_an_unknown_parameter_is_refused(store: Store) -> None:
    await launch(store, patient([]), {"day": "monday", "key": "hush"})

    with pytest.raises(InvalidParameter, match="'nite' is unknown to the job"):
        await restart(store, patient([]), key="hush", nite="x")


async def test_a_numbered_run_is_continued_under_its_number(store: Store) -> None:
    seen: SEEN = []
    await launch(store, patient(seen, ()), {"day": "monday"}, anew=True)

    report = await restart(store, patient(seen, ()))

    assert (report.run, report.restart_of) == (1, 1)
    assert report.reused == ("day",)


async def test_a_changed_declaration_leads_to_no_other_instance(store: Store) -> None:
    await launch(store, patient([], ()), {"day": "monday"})
    other = (Parameter("day", str, identifying=False),)

    with pytest.raises(OtherInstance):
        await restart(store, patient([], other))
    assert len(store.executions) == 1


async def test_another_job_is_refused(store: Store) -> None:
    await launch(store, patient([], ()))
    other = Job("other", [Step("a", lambda ctx: None)])

    with pytest.raises(InvalidValue, match="execution 1 is one of job 'demo'"):
        await restart(store, other)


async def test_the_reasons_to_refuse_a_launch_hold_for_a_restart(store: Store) -> None:
    await launch(store, patient([], (), until=1))

    with pytest.raises(InstanceComplete):
        await restart(store, patient([], ()))


async def test_an_unknown_execution_is_not_found(store: Store) -> None:
    with pytest.raises(ExecutionNotFound):
        await restart(store, patient([], ()))
