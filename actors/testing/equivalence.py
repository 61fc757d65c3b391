"""What a run comes to, and how two runs differ: the equivalence property as code.

Compared is what a user can rely on: how the job ended, the latest row of every step,
the last attempt's way through the plan, and the rows that user code enlisted. Ids,
versions, attempts, times, failure ids and rolled-back chunks may differ.
"""

import json
import sqlite3
from collections import Counter
from collections.abc import Iterator, Mapping
from enum import StrEnum
from typing import Any, TypeAlias
from uuid import UUID

from attrs import asdict, evolve, field, frozen

from ...storage.backend import Backend, run
from ...storage.commands import ExecutionDetail, ListExecutions, ShowExecution
from ...storage.model.execution import (
    Counts,
    Decision,
    StepExecution,
    TransitionKind,
)
from ...storage.model.json import JsonObject
from ...storage.model.lineage import lineage_of
from ...storage.model.status import UNRESOLVED, BatchStatus
from ..job.nested import CHILD_STATE
from .effects import Effects
from .transcript import name

Rows: TypeAlias = Mapping[str, Mapping[tuple[Any, ...], int]]
"""How often each row stands in each table."""

OURS = ("triolet_", "sqlite_")
SHOWN_MAX = 5
_QUESTION = UUID(int=0)
_ABSENT = object()


@frozen(kw_only=True)
class StepEnding:
    """The latest row of one node and visit."""

    status: BatchStatus
    exit_code: str
    counts: Counts
    checkpoint: str | None
    context: str | None


@frozen(kw_only=True)
class Ending:
    """The durable state that a run has come to."""

    status: BatchStatus | None = None
    """Of the instance's last execution; None when there is none."""
    exit_code: str | None = None
    counts: Counts | None = None
    steps: Mapping[str, StepEnding] = field(factory=dict)
    """By node, with the visit when it is not the first."""
    chain: tuple[str, ...] = ()
    """The last execution's transitions, whether a step was run or reused, and those of
    its children."""
    rows: Rows = field(factory=dict)
    """Of all tables that are not ours."""
    effects: Effects = field(factory=dict)
    """What user code noted with `business_effect`, in all launches."""
    unresolved: tuple[str, ...] = ()
    """Whatever is active or UNKNOWN, in any attempt."""


class EquivalenceError(AssertionError):
    """A disturbed run did not come to the end of the undisturbed one.

    Attributes:
        job: Its name.
        store: The kind of store.
        seed: Of the scenario.
        disturbance: What was done to the run.
        schedule: The same as a line that `replay` takes; empty when nothing was done.
        difference: What differs, one line for each thing.
        commits: The transcript of the disturbed run.
    """

    def __init__(
        self,
        *,
        job: str,
        store: str,
        seed: int,
        disturbance: str,
        schedule: str = "",
        difference: tuple[str, ...],
        commits: tuple[str, ...],
    ) -> None:
        self.job = job
        self.store = store
        self.seed = seed
        self.disturbance = disturbance
        self.schedule = schedule
        self.difference = difference
        self.commits = commits
        super().__init__(self._text())

    def _text(self) -> str:
        head = f"job {self.job!r} on {self.store}, seed {self.seed}: {self.disturbance}"
        differs = [f"  {line}" for line in self.difference]
        again = [f'Replay it: replay(scenario, "{self.schedule}")']
        numbered = enumerate(self.commits, 1)
        written = [f"  {number:3} {commit}" for number, commit in numbered]
        return "\n".join(
            [
                head,
                *differs,
                *(again if self.schedule else ()),
                "The commits of the disturbed run:",
                *written,
            ]
        )


def ending_of(backend: Backend, rows: Rows, job: str | None = None) -> Ending:
    """Read what a store with one instance, and its children, has come to.

    Args:
        backend: Open, and asked through its port only.
        rows: The rows of the users' tables, read by `rows_of`.
        job: Its name, in a store that holds others, too.
    """
    details = list(_executions(backend, job))
    if not details:
        return Ending(rows=rows)
    latest = {
        _lineage(detail) + _key(step): step
        for detail in details
        for step in detail.steps
    }
    ends = {_lineage(detail): detail for detail in details}
    *_, root = (detail for detail in details if not _lineage(detail))
    last = root.execution
    return Ending(
        status=last.status,
        exit_code=last.exit_code,
        counts=_comparable(last.counts),
        steps={key: _step_ending(step) for key, step in sorted(latest.items())},
        chain=tuple(
            where + _transition(made)
            for where, detail in sorted(ends.items())
            for made in detail.decisions
        ),
        rows=rows,
        unresolved=tuple(line for detail in details for line in _unresolved(detail)),
    )


def _executions(backend: Backend, job: str | None) -> Iterator[ExecutionDetail]:
    """Give all executions, oldest first."""
    ids: list[int] = []
    more = True
    while more:
        before = ids[-1] if ids else None
        page = run(backend, _QUESTION, ListExecutions(job=job, before=before))
        ids += [line.execution.id for line in page.lines]
        more = page.more
    for execution_id in reversed(ids):
        yield run(backend, _QUESTION, ShowExecution(execution_id))


def _lineage(detail: ExecutionDetail) -> str:
    """Say whose child an execution is; nothing when it is nobody's."""
    lineage = lineage_of(detail.execution.parameters)
    return "" if lineage is None else f"{detail.instance.job} of {lineage.node!r}: "


def _key(step: StepExecution) -> str:
    return step.node if step.visit == 1 else f"{step.node} (visit {step.visit})"


def _comparable(counts: Counts) -> Counts:
    return evolve(counts, rolled_back=0)


def _comparable_state(context: str | None) -> str | None:
    """Leave out the number of a child's execution."""
    if context is None or CHILD_STATE not in context:
        return context
    envelope: JsonObject = json.loads(context)
    payload = envelope["payload"]
    assert isinstance(payload, dict)
    ran = payload.get(CHILD_STATE)
    if isinstance(ran, dict):
        payload[CHILD_STATE] = ran["job"]
    return json.dumps(envelope)


def _step_ending(step: StepExecution) -> StepEnding:
    return StepEnding(
        status=step.status,
        exit_code=step.exit_code,
        counts=_comparable(step.counts),
        checkpoint=step.checkpoint,
        context=_comparable_state(step.context),
    )


def _transition(made: Decision) -> str:
    words = {
        TransitionKind.DECIDER: "decision",
        TransitionKind.SPLIT_AGGREGATE: "join",
    }
    word = words.get(made.kind, "step")
    return f"{word} {made.source!r}: {made.outcome} -> {name(made.target)}"


def _unresolved(detail: ExecutionDetail) -> Iterator[str]:
    execution = detail.execution
    if execution.status in UNRESOLVED:
        yield f"attempt {execution.attempt} is {execution.status}"
    for step in detail.steps:
        if step.status in UNRESOLVED:
            where = f"step {step.node!r} of attempt {execution.attempt}"
            yield f"{where} is {step.status}"


def rows_of(database: sqlite3.Connection) -> Rows:
    """Read all tables of a SQLite database that are not ours."""
    names = database.execute("SELECT name FROM sqlite_schema WHERE type = 'table'")
    tables = [table for (table,) in names if not table.lower().startswith(OURS)]
    return {table: Counter(_rows(database, table)) for table in sorted(tables)}


def _rows(database: sqlite3.Connection, table: str) -> list[tuple[Any, ...]]:
    quoted = table.replace('"', '""')
    return database.execute(f'SELECT * FROM "{quoted}"').fetchall()


def differences(wanted: Ending, found: Ending) -> Iterator[str]:
    """Say what of *found* is not as *wanted*; nothing when the two are equivalent."""
    for line in found.unresolved:
        yield f"left behind: {line}"
    for what in ("status", "exit_code", "counts"):
        was, is_now = getattr(wanted, what), getattr(found, what)
        if was != is_now:
            yield from _differences(f"the job's {what}", was, is_now)
    for node in sorted(wanted.steps.keys() | found.steps.keys()):
        yield from _step_differences(
            node, wanted.steps.get(node), found.steps.get(node)
        )
    if wanted.chain != found.chain:
        yield f"the way should be {_way(wanted)}, is {_way(found)}"
    for table in sorted(wanted.rows.keys() | found.rows.keys()):
        yield from _row_differences(
            table, wanted.rows.get(table), found.rows.get(table)
        )
    for effect in sorted(wanted.effects.keys() | found.effects.keys(), key=repr):
        once, again = wanted.effects.get(effect, 0), found.effects.get(effect, 0)
        if once != again:
            yield f"the effect {effect} should take place x{once}, took place x{again}"


def _way(ending: Ending) -> str:
    return "; ".join(ending.chain) or "empty"


def _step_differences(
    node: str, wanted: StepEnding | None, found: StepEnding | None
) -> Iterator[str]:
    if wanted is None or found is None:
        yield f"step {node!r} should {'not ' if wanted is None else ''}have a row"
        return
    was, is_now = asdict(wanted, recurse=False), asdict(found, recurse=False)
    for what in was:
        if was[what] != is_now[what]:
            name = "state" if what == "context" else what
            yield from _differences(f"step {node!r}: {name}", was[what], is_now[what])


def _differences(what: str, wanted: object, found: object) -> Iterator[str]:
    was, is_now = _readable(wanted), _readable(found)
    if was == is_now:
        was, is_now = wanted, found
    return _value_differences(what, was, is_now)


def _readable(value: object) -> object:
    """Take counts apart, and a stored state out of its envelope."""
    if isinstance(value, Counts):
        return asdict(value)
    if isinstance(value, str) and value.startswith("{"):
        envelope: JsonObject = json.loads(value)
        return envelope.get("payload", value)
    return value


def _value_differences(what: str, wanted: object, found: object) -> Iterator[str]:
    """Name the innermost values that differ, not the objects that hold them."""
    if not (isinstance(wanted, dict) and isinstance(found, dict)):
        yield f"{what} should be {_shown(wanted)}, is {_shown(found)}"
        return
    for key in sorted(wanted.keys() | found.keys()):
        was, is_now = wanted.get(key, _ABSENT), found.get(key, _ABSENT)
        if was != is_now:
            yield from _value_differences(f"{what}[{key!r}]", was, is_now)


def _shown(value: object) -> str:
    if value is _ABSENT or value is None:
        return "absent"
    return str(value) if isinstance(value, StrEnum) else repr(value)


def _row_differences(
    table: str,
    wanted: Mapping[tuple[Any, ...], int] | None,
    found: Mapping[tuple[Any, ...], int] | None,
) -> Iterator[str]:
    if wanted is None or found is None:
        yield f"table {table!r} should {'not ' if wanted is None else ''}be there"
        return
    for what, more, less in (("lacks", wanted, found), ("repeats", found, wanted)):
        wrong = Counter(more) - Counter(less)
        if wrong:
            shown = ", ".join(f"{row} x{times}" for row, times in _first(wrong))
            yield f"table {table!r} {what} {wrong.total()} rows: {shown}"


def _first(rows: Mapping[tuple[Any, ...], int]) -> list[tuple[tuple[Any, ...], int]]:
    return sorted(rows.items(), key=repr)[:SHOWN_MAX]
