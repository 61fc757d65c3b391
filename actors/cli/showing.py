"""``triolet show``: everything that the store knows of one execution."""

from collections.abc import Iterator, Mapping

from attrs import evolve, frozen

from ...storage.commands import (
    ExecutionDetail,
    ListOperations,
    OperatorHistory,
    ShowExecution,
)
from ...storage.commands.continuing import is_cut_off
from ...storage.model.execution import Decision, StepExecution
from ...storage.model.lineage import lineage_of, without_lineage
from ...storage.model.operation import Action, Operation
from ...storage.model.parameters import JobParameter
from ...storage.model.status import BatchStatus
from ..job.nested import RanChild
from ..job.wording import failure_text
from ..kernel.liveness import is_alive
from ..plan.plan import target_text
from .answers import Answer
from .asking import ask
from .children import children_of
from .formats import (
    OWNER_DIED,
    counts_text,
    exit_text,
    instant,
    table,
    took,
    value_text,
)
from .partitioning import (
    ShownPartition,
    partitions_in,
    shown_lines,
    without_workers,
)
from .reusing import reused_in_branches
from .stored import stored_plan
from .visiting import last_visits, left_out, visit_text


@frozen
class Shown:
    """One execution, and what operators did to it."""

    detail: ExecutionDetail
    """Without the rows of partitions' workers."""
    partitions: tuple[ShownPartition, ...]
    children: Mapping[str, RanChild]
    """The executions that steps ran, by node."""
    history: OperatorHistory


def show_execution(url: str, execution_id: int) -> Answer:
    """Give one execution.

    Raises:
        ExecutionNotFound: It is not in this store.
        StoreError: There is no usable store.
    """
    detail = ask(url, ShowExecution(execution_id))
    plan = stored_plan(url, detail.instance, detail.execution)
    if plan is not None:
        inside = reused_in_branches(url, plan, detail)
        if inside:
            every = sorted((*detail.reused, *inside), key=lambda step: step.id)
            detail = evolve(detail, reused=tuple(every))
    history = ask(url, ListOperations(execution_id))
    children = children_of(url, detail, plan)
    lines = [
        *detail_lines(detail, children),
        *history_lines(detail.execution.status, history),
    ]
    plain = evolve(without_workers(detail), partitions=())
    return Answer(Shown(plain, partitions_in(detail), children, history), lines)


def history_lines(status: BatchStatus, history: OperatorHistory) -> Iterator[str]:
    """Write what operators did to an execution."""
    stop = history.stop
    if stop is not None and status.active:
        yield f"a stop is pending: {_asked(stop.actor, stop.reason, stop.requested_at)}"
    if history.recoveries:
        yield "recovery decisions"
    for made in history.recoveries:
        asked = _asked(made.actor, made.reason, made.decided_at)
        yield f"  {made.prior} -> {made.result}: {asked}"
    if history.operations:
        yield "operations"
    for one in history.operations:
        yield "  " + operation_text(one)


def operation_text(one: Operation) -> str:
    """Write what an operator asked for, what was found, and what came of it."""
    asked = _asked(one.actor, one.reason, one.requested_at)
    found = "" if one.prior is None else f" of {one.prior}"
    head = f"{one.action.value.lower()}{found}"
    if one.refusal is not None:
        return f"{head}: {asked}; refused: {one.refusal}"
    return f"{head}: {_effect(one)}, {asked}"


def _effect(one: Operation) -> str:
    if one.action is not Action.STOP:
        same = one.result is one.prior
        return f"{one.result} already" if same else f"now {one.result}"
    if one.prior is BatchStatus.STOPPING:
        return "it was stopping already"
    active = one.prior is not None and one.prior.active
    return "requested" if active else "nothing to stop"


def _asked(actor: str, reason: str | None, at: int) -> str:
    why = f", {reason!r}" if reason else ""
    return f"by {actor} at {instant(at)} UTC{why}"


def detail_lines(
    detail: ExecutionDetail, children: Mapping[str, RanChild]
) -> Iterator[str]:
    """Write one execution, and which others its steps ran."""
    execution = detail.execution
    yield (
        f"execution {execution.id} of job {detail.instance.job}: {execution.status}"
        + _exit(execution.status, execution.exit_code)
    )
    yield f"  instance {execution.instance_id}, attempt {execution.attempt}" + (
        "" if execution.restart_of is None else f", continues {execution.restart_of}"
    )
    lineage = lineage_of(execution.parameters)
    if lineage is not None:
        yield f"  run by step {lineage.node} of execution {lineage.execution_id}"
    yield f"  revision {execution.revision}"
    yield f"  started {instant(execution.started_at)} UTC, " + _end(detail)
    yield f"  owner: {owner_text(detail)}"
    for parameter in without_lineage(execution.parameters):
        yield "  parameter " + parameter_text(parameter)
    if execution.failure is not None:
        yield "  failure: " + failure_text(execution.failure)
        if execution.failure.type is not None:
            yield "  'triolet run' with --debug shows the traceback of a failure"
    steps = without_workers(detail)
    yield from _steps(steps.steps, partitions_in(detail), children)
    yield from _reused(steps.reused)
    yield from _decisions(detail.decisions)


def _exit(status: BatchStatus, code: str) -> str:
    """Write the exit code, which an execution has only when it has ended."""
    return "" if status.active else f", exit {code}"


def _end(detail: ExecutionDetail) -> str:
    execution = detail.execution
    if execution.ended_at is None:
        return "not ended"
    at = instant(execution.ended_at)
    # What is stopped has no failure of its own, even when its process had died.
    of_steps = (one.failure for one in detail.steps)
    failures = [execution.failure, *of_steps]
    if any(one is not None and one.code == OWNER_DIED for one in failures):
        return f"died at {instant(_last_write(detail))} or later, closed {at}"
    duration = took(execution.started_at, execution.ended_at, execution.failure)
    if duration == "-":
        return f"closed {at} by an operator"
    return f"ended {at}, took {duration}"


def _last_write(detail: ExecutionDetail) -> int:
    """Give when the execution last began or ended something by itself."""
    execution = detail.execution
    known = [execution.created_at, execution.started_at]
    for step in detail.steps:
        known += [step.created_at, step.started_at]
        if not is_cut_off(step.failure):
            known.append(step.ended_at)
    known += [made.decided_at for made in detail.decisions]
    return max(at for at in known if at is not None)


def owner_text(detail: ExecutionDetail) -> str:
    """Write who owns the execution, and whether that process is known to have died."""
    who = f"process {detail.owner.pid} on host {detail.owner.host}"
    if detail.execution.status.active and is_alive(detail.owner) is False:
        run = detail.instance.run
        how = "" if run is None else f" with --run {run}"
        return f"{who}, which has died: the next launch{how} takes over"
    return who


def parameter_text(parameter: JobParameter) -> str:
    """Write one parameter."""
    role = "" if parameter.identifying else " (not identifying)"
    return f"{parameter.name} = {value_text(parameter)}{role}"


def _steps(
    steps: tuple[StepExecution, ...],
    partitions: tuple[ShownPartition, ...],
    children: Mapping[str, RanChild],
) -> Iterator[str]:
    if not steps:
        return
    yield "steps"
    shown = last_visits(steps, _visit)
    rows = [
        [
            "  " + visit_text(step.node, step.visit),
            step.status.value,
            "" if step.status.active else exit_text(step.status, step.exit_code),
            took(step.started_at, step.ended_at, step.failure),
            counts_text(step.counts),
        ]
        for step in shown
    ]
    for line, step in zip(table(rows), shown, strict=True):
        yield line
        child = children.get(step.node)
        if child is not None:
            yield f"    job {child.job}: execution {child.execution_id}"
        if step.failure is not None:
            yield "    failure: " + failure_text(step.failure)
        yield from shown_lines(partitions, step.node, step.visit)
    yield from left_out(len(steps) - len(shown))


def _visit(step: StepExecution) -> tuple[str, int]:
    return step.node, step.visit


def _reused(steps: tuple[StepExecution, ...]) -> Iterator[str]:
    if not steps:
        return
    yield "reused"
    shown = last_visits(steps, _visit)
    yield from table(
        [
            [
                "  " + visit_text(step.node, step.visit),
                f"from execution {step.execution_id}",
                counts_text(step.counts),
            ]
            for step in shown
        ]
    )
    yield from left_out(len(steps) - len(shown))


def _decisions(decisions: tuple[Decision, ...]) -> Iterator[str]:
    if not decisions:
        return
    yield "decisions"
    shown = last_visits(decisions, lambda made: (made.source, made.visit))
    yield from table(
        [
            [
                f"  {made.sequence}",
                visit_text(made.source, made.visit),
                made.outcome,
                "-> " + target_text(made.target),
                "" if made.reused is None else _citation(made),
            ]
            for made in shown
        ]
    )
    yield from left_out(len(decisions) - len(shown))


def _citation(made: Decision) -> str:
    assert made.reused is not None
    return f"as in execution {made.reused.execution_id}"
