"""Commits in words: one line for each, without ids and times.

Two runs of one job that do the same have the same lines, whatever else their stores
hold.
"""

from collections.abc import Iterator, Sequence
from typing import Any

from ...storage.commands import (
    Advance,
    Command,
    CommitChunk,
    NewDecision,
    NextStep,
    OpenExecution,
    Question,
    StepEnd,
)
from ...storage.model.execution import NodeTarget, Stop, Target, Terminal


def describe(batch: Sequence[Command[Any]]) -> str:
    """Say what a batch wants to make durable; its questions do not count."""
    changes = (one for one in batch if not isinstance(one, Question))
    return " + ".join(map(_command, changes))


def _command(command: Command[Any]) -> str:
    match command:
        case Advance():
            return ", ".join(_parts(command)) or "nothing"
        case OpenExecution(job=job, first=first):
            start = "" if first is None else f", {_start(first)} if it is new"
            return f"open {job!r}{start}"
        case CommitChunk(counts=counts):
            return f"chunk {counts.committed} of {counts.read} items"
        case _:
            return type(command).__name__


def _parts(command: Advance) -> Iterator[str]:
    if command.begin is not None:
        yield "begin a step"
    if command.finish is not None:
        yield _finish(command.finish) + (" with rows" if command.write else "")
    for decision in command.decisions:
        yield _decision(decision)
    if command.start is not None:
        yield _start(command.start)
    if command.end is not None:
        yield f"end {command.end.status}"


def _finish(finish: StepEnd) -> str:
    came_to = finish.status.value
    if finish.exit_code != came_to:
        came_to += f" ({finish.exit_code})"
    made = finish.decision
    return f"finish {came_to}" + ("" if made is None else f" -> {name(made.target)}")


def _decision(decision: NewDecision) -> str:
    word = decision.kind.value.lower().replace("_", " ")
    rule = f"{decision.outcome} -> {name(decision.target)}"
    return f"{word} {decision.source!r}: {rule}"


def _start(step: NextStep) -> str:
    return f"start {step.node!r}" + ("" if step.inherit is None else " again")


def name(target: Target) -> str:
    """Spell a target as in a definition."""
    match target:
        case NodeTarget(node):
            return repr(node)
        case Stop(node):
            return f"Stop(resume_at={node!r})"
        case Terminal():
            return target.name
