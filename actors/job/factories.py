"""Making, at the beginning of a launch, the steps that have a factory."""

from attrs import evolve

from ..plan.assembly_errors import ComponentMismatch, FactoryFailed
from ..plan.bound_code import check_step_name
from ..plan.compile import CompiledJob
from ..plan.definition import Step
from ..plan.made import Factory, made_step, reason_against
from ..plan.plan import StepNode
from .boundary import Boundary, ComponentFailed, OutcomeUnknown, Where


async def materialised(job: CompiledJob, boundary: Boundary) -> CompiledJob:
    """Call the factories of a job, in the order of node ids.

    Raises:
        FactoryFailed: One of them raised.
        StepNameMismatch: One made a step of another name.
        ComponentMismatch: One made something else than the plan declares.
        trio.Cancelled: One was cancelled.
    """
    if not job.factories:
        return job
    made = {}
    for key in sorted(job.factories):
        node = job.plan.every[key]
        assert isinstance(node, StepNode), "a factory belongs to no step"
        made[key] = await _made(job.factories[key], job.steps[key], node, boundary)
    return evolve(job, steps={**job.steps, **made})


async def _made(
    factory: Factory, declared: Step, node: StepNode, boundary: Boundary
) -> Step:
    where = Where(node.id, "factory_failed")
    try:
        made = await boundary.call(where, factory.make)
    except ComponentFailed as exc:
        raise FactoryFailed(node.id, type(exc.cause).__name__) from exc.cause
    except OutcomeUnknown as exc:
        raise FactoryFailed(node.id, type(exc).__name__) from exc
    step = made_step(declared, made)
    check_step_name(node.id, node.name, step)
    step = evolve(step, id=node.id, name=node.name, then=None)
    reason = reason_against(step, node)
    if reason is not None:
        raise ComponentMismatch(node.id, reason)
    return step
