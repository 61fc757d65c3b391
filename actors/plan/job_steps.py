"""What users write for a step that runs another job."""

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, TypeAlias

from attrs import field, frozen

from ...storage.model.errors import InvalidValue
from ...storage.model.execution import End
from ...storage.model.parameters import ParameterValue
from .steps import Function, Step, StepListener

if TYPE_CHECKING:
    from .compile import CompiledJob
    from .definition import Job


@frozen
class FromParent:
    """A parameter of the child that has the value of a parameter of its parent.

    Args:
        name: Of the parent's parameter.
    """

    name: str


ChildParameters: TypeAlias = Mapping[str, ParameterValue | FromParent] | Function


def _parameters(given: ChildParameters) -> ChildParameters:
    return dict(given) if isinstance(given, Mapping) else given


def _exits(given: Mapping[str, str]) -> Mapping[str, str]:
    told: object = given
    if not isinstance(told, Mapping):
        raise InvalidValue("exits", f"must be a dict, not {type(told).__name__}")
    return dict(given)


@frozen
class ChildJob:
    """The work of a step that is another job; made by `JobStep`."""

    job: "Job"
    parameters: ChildParameters = field(converter=_parameters, hash=False)
    exits: Mapping[str, str] = field(converter=_exits, hash=False)
    compiled: "CompiledJob | None" = field(default=None, eq=False, repr=False)
    """Filled in while the parent is compiled, unless the job has mistakes."""


def JobStep(
    id: str,  # noqa: A002  # as in Step
    job: "Job",
    *,
    parameters: ChildParameters | None = None,
    exits: Mapping[str, str] | None = None,
    name: str | None = None,
    then: Mapping[str, str | End] | None = None,
    start_limit: int | None = None,
    visit_limit: int | None = None,
    timeout: float | None = None,
    restartable: bool = True,
    listeners: Iterable[StepListener] = (),
    revision: str = "1",
) -> Step:
    """Make a step that runs another job, its child, as an execution of its own.

    The child's instance belongs to this step of this instance of the parent: a restart
    of the parent continues it where it was, with the parameters that it was given
    first, and a child that has completed is not run again. The step ends as the child
    does: COMPLETED, FAILED, STOPPED or UNKNOWN. A stop of the parent stops the child.

    Args:
        id: Names the node, as for `Step`; also a step of a branch may be one.
        job: The child. Jobs may be nested 8 deep, and none may contain itself.
        parameters: Of the child: values and `FromParent` by name, or a plain or async
            function that is called with a `StepContext` and returns the values by name.
            It is called before the child begins, and not again by a restart, except for
            values of secret parameters, which are not stored.
        exits: Renames the exit codes COMPLETED and FAILED of the child.
        name: As for `Step`, and so are the following.
        then: Must be given when *exits* renames FAILED: that leads to FAIL by default.
        start_limit: How often the step, and not the child, may be started.
        visit_limit: As for `Step`; each visit of the step has a child of its own.
        timeout: As for `Step`: what is left of it, the child has.
        restartable: Of the step; a `Job` says it of itself.
        listeners: Of the step.
        revision: Of *parameters*; it changes with the meaning.
    """
    return Step(
        id,
        ChildJob(job, {} if parameters is None else parameters, exits or {}),
        name=name,
        then=then,
        start_limit=start_limit,
        visit_limit=visit_limit,
        timeout=timeout,
        restartable=restartable,
        listeners=tuple(listeners),
        revision=revision,
    )
