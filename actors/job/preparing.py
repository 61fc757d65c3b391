"""Making a step ready to run: its context, and the work of its kind."""

from collections.abc import Callable
from functools import partial

import trio
from attrs import evolve

from ..kernel.stop import StopToken
from ..plan.actions import OpenStep
from ..plan.definition import Chunk, Step
from ..plan.job_steps import ChildJob
from .child import ChildRun
from .chunk import ChunkRun
from .context import Partition, StepContext
from .step import Environment, StepRun, TaskletRun, Work, state_for


def prepared(
    step: Step,
    row: OpenStep,
    partition: Partition | None,
    environment: Environment,
    scope: trio.CancelScope,
    progress: Callable[[OpenStep, int, int | None], None],
) -> StepRun:
    """Make a step ready to run.

    Args:
        step: The user's code.
        row: Of the step, durable.
        partition: That it works on, if it is a worker.
        environment: That it runs in.
        scope: Around the run.
        progress: Called with the row, and how many items are done of how many.
    """
    execution = environment.context
    if step.timeout is not None:
        # It may be brought to its end alone.
        execution = evolve(execution, stop=StopToken(execution.stop))
    ctx = StepContext(
        execution=execution,
        node=step.id,
        path=row.node.id,
        partition=partition,
        step_id=row.step_id,
        step_attempt=row.attempt,
        visit=row.visit,
        state=state_for(row),
        progress=partial(progress, row),
    )
    work = _work_of(step, row, ctx, environment)
    return StepRun(step, row, work, ctx, environment, scope)


def _work_of(
    step: Step, row: OpenStep, ctx: StepContext, environment: Environment
) -> Work:
    if isinstance(step.work, Chunk):
        return ChunkRun(step, step.work, row, ctx, environment)
    if isinstance(step.work, ChildJob):
        return ChildRun(step, step.work, row, ctx, environment)
    return TaskletRun(step, ctx, environment.boundary)
