"""The kit sees what is not safe, says where, and is the same every time."""

import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
import trio
from attrs import evolve

from tests.job.components import ListReader, RowWriter
from tests.storage.backends import Clock
from triolet.actors import BatchStatus, Chunk, Job, JsonObject, Step, StepContext
from triolet.actors.testing import (
    Ending,
    EquivalenceError,
    Fault,
    Scenario,
    StepEnding,
    StoreKind,
    Variant,
    crash_at_every_commit,
    replay,
    stage,
)
from triolet.actors.testing.equivalence import differences
from triolet.actors.testing.faults import Crashed, FaultyBackend, Wire
from triolet.storage.backend import AnswerLost, Backend, Committed, NotCommitted, drive
from triolet.storage.commands import ListExecutions, OwnerFacts, RegisterOwner
from triolet.storage.envelope import CONTEXT_FORMAT, STATE_SCHEMA, seal
from triolet.storage.memory import MemoryBackend
from triolet.storage.model.execution import Counts
from triolet.storage.stores import StoreOptions, open_store

ONE = UUID(int=1)
REGISTER = RegisterOwner(OwnerFacts(pid=1, host="here"), 30_000_000)
BOTH = pytest.mark.parametrize("store", StoreKind)


async def note(ctx: StepContext) -> None:
    await trio.lowlevel.checkpoint()
    ctx.state["node"] = ctx.node


def safe() -> Job:
    return Job("safe", [Step("a", note), Step("b", note)])


def counting() -> Job:
    """Not safe: what is committed depends on how often the code has run."""
    calls: list[str] = []

    def count(ctx: StepContext) -> None:
        calls.append(ctx.node)
        ctx.state["calls"] = len(calls)

    return Job("counting", [Step("a", note), Step("b", count), Step("c", note)])


class Forgetful(ListReader):
    """Not safe: goes on from the beginning whatever the checkpoint says."""

    def open(self, state: JsonObject | None) -> None:
        super().open(None)


def forgetting() -> Job:
    chunk = Chunk(Forgetful((1, 2, 3, 4)), RowWriter(), size=2)
    return Job("forgetting", [Step("copy", chunk)])


def failure_of(scenario: Scenario) -> EquivalenceError:
    with pytest.raises(EquivalenceError) as caught:
        crash_at_every_commit(scenario)
    return caught.value


def test_the_example_of_the_readme_runs() -> None:
    crash_at_every_commit(Scenario(safe, parameters={"day": "2026-11-30"}))


@BOTH
def test_state_that_depends_on_how_often_code_ran_is_found(store: StoreKind) -> None:
    error = failure_of(Scenario(counting, store=store, seed=7))
    text = str(error)
    assert f"job 'counting' on {store}, seed 7: at commit " in text
    assert "step 'b': state['calls'] should be 1, is 2" in text
    assert "payload" not in text


def test_where_logging_is_not_set_up_only_the_undisturbed_run_is_heard() -> None:
    program = """
from triolet.actors import Job, Step
from triolet.actors.testing import Scenario, crash_at_every_commit
def fail(ctx): raise ValueError("as it is meant to")
crash_at_every_commit(Scenario(Job("j", [Step("a", fail, then={"*": "b", "FAILED": "b"}),
                                         Step("b", lambda ctx: None)])))
"""
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0
    assert done.stderr.count("a failed: as it is meant to") == 1
    assert "could not" not in done.stderr


def test_a_difference_deep_in_a_state_is_named_by_its_keys() -> None:
    def state(days: int) -> str:
        payload = {"seen": {"days": days, "month": "may"}, "same": [1]}
        return seal(CONTEXT_FORMAT, STATE_SCHEMA, payload, "it")

    wanted, found = with_step(context=state(1))(), with_step(context=state(2))()
    assert list(differences(wanted, found)) == [
        "step 'a': state['seen']['days'] should be 1, is 2"
    ]
    assert list(differences(END, found)) == [
        "step 'a': state should be absent, is "
        "{'same': [1], 'seen': {'days': 2, 'month': 'may'}}"
    ]


@BOTH
def test_a_reader_that_forgets_its_position_repeats_rows(store: StoreKind) -> None:
    error = failure_of(Scenario(forgetting, store=store))
    assert any(
        line.startswith("table 'rows' repeats 2 rows: ") for line in error.difference
    )


def test_a_failure_is_replayed_by_the_line_that_it_names() -> None:
    error = failure_of(Scenario(counting))
    assert f'replay(scenario, "{error.schedule}")' in str(error)
    for again in replay, lambda story, line: crash_at_every_commit(story, only=line):
        with pytest.raises(EquivalenceError) as caught:
            again(Scenario(counting), error.schedule)
        assert str(caught.value) == str(error)


@BOTH
def test_a_run_is_the_same_every_time(store: StoreKind) -> None:
    fault = Fault(4, Variant.DIE_AFTER)
    one, other = (Scenario(safe, store=store, seed=3).run(fault) for _ in range(2))
    assert one == other


def test_both_stores_make_the_same_commits_and_come_to_the_same_end() -> None:
    memory, sqlite = (Scenario(forgetting, store=store).run() for store in StoreKind)
    assert memory.commits == sqlite.commits
    assert memory.ending == sqlite.ending


def test_a_job_may_be_given_as_it_is() -> None:
    assert Scenario(safe()).run().ending.status is BatchStatus.COMPLETED


def test_the_factory_is_called_once_for_every_run() -> None:
    made: list[Job] = []

    def make() -> Job:
        made.append(safe())
        return made[-1]

    scenario = Scenario(make)
    scenario.run(Fault(4, Variant.DIE_BEFORE))
    scenario.run()
    assert len(made) == 2


def test_nothing_is_left_of_a_sqlite_store(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stage, "_fast_folder", lambda: tmp_path)
    seen: list[list[Path]] = []

    def look(ctx: StepContext) -> None:
        seen.append(list(tmp_path.glob("*/*.db")))

    Scenario(Job("looking", [Step("a", look)]), store="sqlite").run()
    assert [len(files) for files in seen] == [1]
    assert list(tmp_path.iterdir()) == []


def test_a_job_that_hangs_is_an_error() -> None:
    async def hang(ctx: StepContext) -> None:
        await trio.sleep_forever()

    with pytest.raises(trio.TooSlowError):
        Scenario(Job("hanging", [Step("a", hang)])).run()


def test_an_hour_passes_at_once_and_the_lease_is_renewed_meanwhile() -> None:
    async def sleep(ctx: StepContext) -> None:
        await trio.sleep(3605)

    run = Scenario(Job("sleeping", [Step("a", sleep)]), lease=30).run()
    assert run.ending.status is BatchStatus.COMPLETED
    assert run.commits.count("RenewLease") == 3605 // 10


@pytest.fixture(params=list(StoreKind))
def inner(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Backend]:
    url = "memory:"
    if request.param is StoreKind.SQLITE:
        url = f"sqlite:///{tmp_path / 'store.db'}"
    backend = open_store(url, StoreOptions(clock=Clock()))
    yield backend
    backend.close()


def faulty(inner: Backend, variant: Variant) -> FaultyBackend:
    return FaultyBackend(inner, Wire((Fault(1, variant),)))


@pytest.mark.parametrize("variant", [one for one in Variant if one.deadly])
def test_once_dead_a_process_writes_nothing_more(
    inner: Backend, variant: Variant
) -> None:
    backend = faulty(inner, variant)
    for _ in range(3):
        with pytest.raises(Crashed):
            drive(backend.apply(ONE, [REGISTER]))
    with pytest.raises(Crashed):
        drive(backend.apply(ONE, [ListExecutions()]))
    with pytest.raises(Crashed):
        drive(backend.settle(ONE, [REGISTER]))
    settled = drive(inner.settle(ONE, [REGISTER]))
    assert isinstance(settled, Committed if variant.applied else NotCommitted)
    assert backend.wire.commits == ["RegisterOwner"]


@pytest.mark.parametrize("variant", [one for one in Variant if not one.deadly])
def test_settling_tells_what_became_of_a_lost_answer(
    inner: Backend, variant: Variant
) -> None:
    backend = faulty(inner, variant)
    with pytest.raises(AnswerLost):
        drive(backend.apply(ONE, [REGISTER]))
    settled = drive(backend.settle(ONE, [REGISTER]))
    assert isinstance(settled, Committed if variant.applied else NotCommitted)
    assert not backend.dead


def test_questions_are_no_commits() -> None:
    backend = faulty(MemoryBackend(Clock()), Variant.DIE_BEFORE)
    drive(backend.apply(ONE, [ListExecutions()]))
    assert backend.wire.commits == []


STEP = StepEnding(
    status=BatchStatus.COMPLETED,
    exit_code="COMPLETED",
    counts=Counts(read=2),
    checkpoint=None,
    context=None,
)
END = Ending(
    status=BatchStatus.COMPLETED,
    exit_code="COMPLETED",
    steps={"a": STEP},
    chain=("step 'a': COMPLETED -> COMPLETE",),
    rows={"t": {(1,): 1}},
)


def with_step(**changes: Any) -> Callable[[], Ending]:
    return lambda: evolve(END, steps={"a": evolve(STEP, **changes)})


@pytest.mark.parametrize(
    "other",
    [
        lambda: evolve(END, status=BatchStatus.FAILED),
        lambda: evolve(END, exit_code="FAILED"),
        lambda: evolve(END, steps={}),
        lambda: evolve(END, steps={"a": STEP, "b": STEP}),
        with_step(status=BatchStatus.FAILED),
        with_step(exit_code="X"),
        with_step(counts=Counts(read=3)),
        with_step(checkpoint="{}"),
        with_step(context="{}"),
        lambda: evolve(END, chain=()),
        lambda: evolve(END, rows={}),
        lambda: evolve(END, rows={"t": {(1,): 2}}),
        lambda: evolve(END, rows={"t": {}}),
        lambda: evolve(END, unresolved=("attempt 1 is STARTED",)),
    ],
)
def test_every_part_of_the_end_counts(other: Callable[[], Ending]) -> None:
    assert list(differences(END, END)) == []
    assert len(list(differences(END, other()))) == 1
