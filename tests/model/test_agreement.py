"""Random plans: what the product does is what the naive interpreter says.

``TRIOLET_LONG=1`` tries many more plans, other ones each time.
"""

import logging
import os
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import TypeAlias

import pytest
import trio
from hypothesis import given, note, settings

from tests.model.interpreter import (
    LAUNCHES_MAX,
    RESUME,
    Interpreter,
    Launch,
    Spec,
    SplitSpec,
    named,
)
from tests.model.plans import Script, described, plans
from triolet.actors import (
    BatchStatus,
    CompiledJob,
    LaunchReport,
    Runtime,
    RuntimeOptions,
    compile_job,
    open_runtime,
)
from triolet.actors.job.launch import launch_of
from triolet.actors.job.previewing import previewed
from triolet.actors.plan.preview import Preview, Verdict
from triolet.storage.commands import ExecutionDetail
from triolet.storage.memory import MemoryBackend
from triolet.storage.model.errors import Rejection
from triolet.storage.model.execution import (
    Decision,
    DecisionRef,
    NodeTarget,
    Stop,
    Target,
    Terminal,
)
from triolet.storage.stores import host_clock

LONG = os.environ.get("TRIOLET_LONG") == "1"
MEMORY_EXAMPLES = 20_000 if LONG else 500
SQLITE_EXAMPLES = 2_000 if LONG else 40

Doors: TypeAlias = Callable[[], AbstractAsyncContextManager[Runtime]]
"""Opens a runtime on one and the same store, for one launch."""


@pytest.fixture(autouse=True, scope="module")
def _quiet() -> Iterator[None]:
    """Scripted failures fill no log."""
    logging.disable(logging.CRITICAL)
    yield
    logging.disable(logging.NOTSET)


def _options() -> RuntimeOptions:
    return RuntimeOptions(inline=True, random=Random(0))


def _target(target: Target) -> str:
    match target:
        case NodeTarget(node):
            return node
        case Stop(node):
            return RESUME + node
        case Terminal():
            return target.name


def _decision(made: Decision, cites: Mapping[DecisionRef, str]) -> str:
    cited = "" if made.reused is None else f" as in {cites[made.reused]}"
    words = f"{named(made.source, made.visit)} {made.kind} {made.outcome}"
    return f"{words} -> {_target(made.target)}{cited}"


def _cites(details: list[ExecutionDetail]) -> dict[DecisionRef, str]:
    """Name all transitions by attempt and place: numbers may be left out by splits."""
    return {
        DecisionRef(made.execution_id, made.sequence): f"{one.execution.attempt}.{at}"
        for one in details
        for at, made in enumerate(one.decisions, 1)
    }


def _starts(details: list[ExecutionDetail]) -> Iterator[str]:
    rows = [(row.node, row.visit) for detail in details for row in detail.steps]
    for visit in sorted(set(rows)):
        yield f"{named(*visit)}: {rows.count(visit)}"


def _seen(
    nodes: tuple[Spec, ...],
    report: LaunchReport,
    calls: list[str],
    details: list[ExecutionDetail],
) -> Launch:
    """Describe a launch by its report and by what the store says of it."""
    stored = details[-1].execution
    assert stored.status is report.status
    assert stored.exit_code == report.exit_code
    assert stored.failure == report.failure
    rows = {(row.id, row.status, row.exit_code) for row in details[-1].steps}
    run = {(s.step_id, s.status, s.exit_code) for s in report.steps if not s.reused}
    assert rows == run
    made = details[-1].decisions
    numbers = [one.sequence for one in made]
    assert numbers == sorted(set(numbers))
    if not any(isinstance(one, SplitSpec) for one in nodes):
        assert numbers == list(range(1, len(made) + 1))
    cites = _cites(details)
    failure = f" ({report.failure.code})" if report.failure else ""
    return Launch(
        f"{report.status}/{report.exit_code}{failure}",
        tuple(calls),
        tuple(
            f"{named(s.node, s.visit)} {s.status}/{s.exit_code}{' reused' * s.reused}"
            for s in report.steps
        ),
        tuple(_decision(one, cites) for one in made),
        tuple(_starts(details)),
    )


async def _preview(runtime: Runtime, job: CompiledJob) -> Preview | str:
    """Ask what the next launch would do; give the code of what would refuse it."""
    request = launch_of(job, {"day": "today"}, anew=False, run=None, wait=True)
    walk = previewed(request)
    try:
        question = next(walk)
        while True:
            question = walk.send(await runtime._store.ask(question))
    except StopIteration as end:
        found: Preview = end.value
        return found
    except Rejection as exc:
        return exc.code


def _check_preview(
    nodes: tuple[Spec, ...], preview: Preview | str, report: LaunchReport
) -> None:
    """Compare a preview with its launch, for as long as every step succeeded.

    Branches are previewed as if none of them had any bearing on the others.
    """
    assert isinstance(preview, Preview)
    if any(isinstance(one, SplitSpec) for one in nodes) and (
        preview.ends is None or report.status is not BatchStatus.COMPLETED
    ):
        return
    steps = (Verdict.RUN, Verdict.REUSE)
    expected = [one for one in preview.nodes if one.verdict in steps]
    for foreseen, step in zip(expected, report.steps, strict=False):
        reused = foreseen.verdict is Verdict.REUSE
        visit = step.node, step.visit, step.reused
        assert (foreseen.node, foreseen.visit, reused) == visit
        if not step.reused and step.exit_code != "COMPLETED":
            return
    if len(report.steps) == len(expected) and preview.ends is not None:
        assert report.status is preview.ends


async def _launched(runtime: Runtime, job: CompiledJob) -> LaunchReport | str:
    """Launch; give the report, or the code of what refused it."""
    try:
        return await runtime.launch(job, day="today")
    except Rejection as exc:
        return exc.code


async def _launches(
    doors: Doors, nodes: tuple[Spec, ...], script: Script
) -> list[Launch]:
    compiled = compile_job(script.job(nodes))
    seen: list[Launch] = []
    details: list[ExecutionDetail] = []
    while len(seen) < LAUNCHES_MAX:
        script.calls.clear()
        async with doors() as runtime:
            preview = await _preview(runtime, compiled)
            assert not script.calls
            outcome = await _launched(runtime, compiled)
            if isinstance(outcome, str):
                assert preview == outcome
                seen.append(Launch(f"refused: {outcome}", tuple(script.calls)))
                break
            report = outcome
            _check_preview(nodes, preview, report)
            details.append(await runtime.show(report.execution_id))
        seen.append(_seen(nodes, report, script.calls, details))
    return seen


def _agree(nodes: tuple[Spec, ...], doors: Doors) -> None:
    script = Script()
    seen = trio.run(_launches, doors, nodes, script)
    expected = list(Interpreter(nodes).history())
    if seen == expected:
        return
    for title, lines in (
        ("plan", described(nodes)),
        ("the product", map(repr, seen)),
        ("the interpreter", map(repr, expected)),
    ):
        note("\n  ".join([f"{title}:", *lines]))
    assert seen == expected


@given(nodes=plans())
@settings(
    max_examples=MEMORY_EXAMPLES, derandomize=not LONG, deadline=None, print_blob=True
)
def test_runtime_agrees_with_the_interpreter(nodes: tuple[Spec, ...]) -> None:
    backend = MemoryBackend(host_clock)

    @asynccontextmanager
    async def doors() -> AsyncIterator[Runtime]:
        async with open_runtime(backend, _options()) as runtime:
            yield runtime

    try:
        _agree(nodes, doors)
    finally:
        backend.close()


@given(nodes=plans())
@settings(
    max_examples=SQLITE_EXAMPLES, derandomize=not LONG, deadline=None, print_blob=True
)
def test_runtimes_on_a_file_agree_with_the_interpreter(
    nodes: tuple[Spec, ...],
) -> None:
    with TemporaryDirectory() as folder:
        path = Path(folder, "jobs.db")
        _agree(nodes, lambda: open_runtime(f"sqlite:///{path}", _options()))
