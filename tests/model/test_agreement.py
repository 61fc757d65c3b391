"""Random plans: what the product does is what the naive interpreter says.

``TRIOLET_LONG=1`` tries many more plans, other ones each time.
"""

import logging
import os
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import TypeAlias

import pytest
import trio
from hypothesis import given, note, settings

from tests.model.interpreter import LAUNCHES_MAX, Interpreter, Launch, Spec
from tests.model.plans import Script, described, plans
from triolet.actors import (
    Job,
    LaunchReport,
    Runtime,
    RuntimeOptions,
    compile_job,
    open_runtime,
)
from triolet.storage.commands import ExecutionDetail
from triolet.storage.memory import MemoryBackend
from triolet.storage.model.errors import Rejection
from triolet.storage.model.execution import Decision, NodeTarget, Target
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
    return target.node if isinstance(target, NodeTarget) else target.name


def _decision(made: Decision, attempts: dict[int, int]) -> str:
    cited = ""
    if made.reused is not None:
        attempt = attempts[made.reused.execution_id]
        cited = f" as in {attempt}.{made.reused.sequence}"
    words = f"{made.source} {made.kind} {made.outcome}"
    return f"{words} -> {_target(made.target)}{cited}"


def _starts(details: list[ExecutionDetail]) -> Iterator[str]:
    rows = [row.node for detail in details for row in detail.steps]
    for node in sorted(set(rows)):
        yield f"{node}: {rows.count(node)}"


def _seen(
    report: LaunchReport, calls: list[str], details: list[ExecutionDetail]
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
    assert [one.sequence for one in made] == list(range(1, len(made) + 1))
    attempts = {d.execution.id: d.execution.attempt for d in details}
    failure = f" ({report.failure.code})" if report.failure else ""
    return Launch(
        f"{report.status}/{report.exit_code}{failure}",
        tuple(calls),
        tuple(
            f"{s.node} {s.status}/{s.exit_code}{' reused' * s.reused}"
            for s in report.steps
        ),
        tuple(_decision(one, attempts) for one in made),
        tuple(_starts(details)),
    )


async def _launches(doors: Doors, job: Job, script: Script) -> list[Launch]:
    compiled = compile_job(job)
    seen: list[Launch] = []
    details: list[ExecutionDetail] = []
    while len(seen) < LAUNCHES_MAX:
        script.calls.clear()
        async with doors() as runtime:
            try:
                report = await runtime.launch(compiled, day="today")
            except Rejection as exc:
                seen.append(Launch(f"refused: {exc.code}", tuple(script.calls)))
                break
            details.append(await runtime.show(report.execution_id))
        seen.append(_seen(report, script.calls, details))
    return seen


def _agree(nodes: tuple[Spec, ...], doors: Doors) -> None:
    script = Script()
    seen = trio.run(_launches, doors, script.job(nodes), script)
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
