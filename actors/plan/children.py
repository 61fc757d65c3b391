"""Jobs inside of jobs: what the plan keeps of them, and what is wrong with them."""

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from ...storage.model.errors import InvalidParameter, Problem, TrioletError
from ...storage.model.execution import ExitCode
from ...storage.model.names import NameKind
from ...storage.model.parameters import ParameterSet
from .arguments import resolve
from .bindings import function_reasons
from .checks import name_reasons
from .definition import Job, Node, Parameter, Split, Step
from .job_steps import ChildJob, FromParent
from .naming import every_node, workers_in
from .plan import JobDeclaration

if TYPE_CHECKING:
    from .compile import CompiledJob

DEPTH_MAX = 8
"""How many jobs may be inside of each other, the outermost counted."""
RENAMED = (ExitCode.COMPLETED.value, ExitCode.FAILED.value)
"""A child that ends otherwise ends its parent in the same way, whatever its code."""


def child_declaration(child: ChildJob, revision: str) -> JobDeclaration:
    """Give what the plan keeps of a step that runs a job."""
    plan = None if child.compiled is None else child.compiled.plan
    return JobDeclaration(
        # A job with mistakes is reported; any other name will do here.
        "?" if plan is None else plan.job,
        bytes(32) if plan is None else plan.fingerprint,
        revision,
        tuple(sorted(child.exits.items(), key=repr)),
    )


def child_parameters(
    child: ChildJob, given: Mapping[str, object], parent: Mapping[str, object]
) -> ParameterSet:
    """Make a child's own parameters.

    Args:
        child: The child.
        given: What the step gives to it.
        parent: The parent's parameters.

    Raises:
        InvalidParameter: One is unknown, missing or of the wrong type.
        InvalidName: The name of one breaks the rules.
    """
    values = {name: _value_of(value, parent) for name, value in given.items()}
    declared = () if child.compiled is None else child.compiled.parameters
    return resolve(declared, values)


def _value_of(value: object, parent: Mapping[str, object]) -> object:
    if not isinstance(value, FromParent):
        return value
    if value.name not in parent:
        raise InvalidParameter(value.name, "is not among those of the parent")
    return parent[value.name]


def child_problems(job: Job, nodes: Mapping[str, Node]) -> Iterator[Problem]:
    """Find what is wrong with the steps that run jobs."""
    every = list(every_node(nodes.values()))
    for node in every:
        for worker in workers_in([node]):
            if isinstance(worker.work, ChildJob):
                yield Problem(node.id, "its worker may not run a job")
    splits = {
        step.id: node
        for node in every
        if isinstance(node, Split)
        for branch in node.branches
        for step in branch
        if step.then is None
    }
    for step in every:
        if not (isinstance(step, Step) and isinstance(step.work, ChildJob)):
            continue
        for reason in _child_reasons(job, step.work):
            yield Problem(step.id, reason)
        leading = splits.get(step.id, step)
        if ExitCode.FAILED in step.work.exits and leading.then is None:
            reason = (
                "exits renames FAILED, which leads to FAIL by default: say with "
                f"then= of {leading.id!r} where the new code leads"
            )
            yield Problem(step.id, reason)


def _child_reasons(job: Job, child: ChildJob) -> Iterator[str]:
    yield from _exit_reasons(child)
    given: object = child.parameters
    if isinstance(given, Mapping):
        yield from _parameter_reasons(job, child)
    elif not callable(given):
        kind = type(given).__name__
        yield f"the parameters must be a dict or a function, not {kind}"
    else:
        yield from function_reasons(given, "function of parameters")
    if child.compiled is None:
        return
    inside = set(_names(child.compiled))
    if job.name in inside:
        yield f"its job {child.compiled.job!r} is, or contains, the job that it is in"
    elif 1 + _depth(child.compiled) > DEPTH_MAX:
        yield (
            f"its job {child.compiled.job!r} has jobs inside of each other: with this "
            f"one more than {DEPTH_MAX}, which is the most"
        )


def _names(job: "CompiledJob") -> Iterator[str]:
    yield job.job
    for child in job.children.values():
        yield from _names(child)


def _depth(job: "CompiledJob") -> int:
    return 1 + max(map(_depth, job.children.values()), default=0)


def _exit_reasons(child: ChildJob) -> Iterator[str]:
    for code, renamed in child.exits.items():
        if code not in RENAMED:
            yield (
                f"exits renames {code!r}, but only COMPLETED and FAILED lead anywhere: "
                "a child that ends otherwise ends its parent, too"
            )
        yield from name_reasons(renamed, NameKind.EXIT_CODE)


def _parameter_reasons(job: Job, child: ChildJob) -> Iterator[str]:
    """Check what a dict of parameters shows before any launch."""
    if child.compiled is None:
        return
    assert isinstance(child.parameters, Mapping)
    wanted = _by_name(child.compiled.parameters)
    offered = _by_name(job.parameters)
    values: dict[str, object] = {}
    for name, value in child.parameters.items():
        values[name] = value
        if isinstance(value, FromParent):
            values[name] = wanted[name].type() if name in wanted else ""
            yield from _passing_reasons(wanted.get(name), value, offered)
    try:
        resolve(child.compiled.parameters, values)
    except TrioletError as exc:
        yield f"what it gives to job {child.compiled.job!r} does not fit: {exc}"


def _by_name(declared: Sequence[object]) -> dict[str, Parameter]:
    return {one.name: one for one in declared if isinstance(one, Parameter)}


def _passing_reasons(
    wanted: Parameter | None, value: FromParent, offered: Mapping[str, Parameter]
) -> Iterator[str]:
    one = offered.get(value.name)
    if one is None:
        if offered:
            yield f"FromParent({value.name!r}): the job declares no such parameter"
        return
    if wanted is not None and wanted.type is not one.type:
        yield (
            f"parameter {value.name!r} is {one.type.__name__}, but {wanted.name!r} of "
            f"its job is {wanted.type.__name__}"
        )
    if one.secret and (wanted is None or not wanted.secret):
        yield f"parameter {value.name!r} is secret here, but would not be in its job"
