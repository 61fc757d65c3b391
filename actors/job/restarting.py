"""Restarting an execution by its number: with which parameters the job is launched."""

from collections.abc import Mapping

from attrs import frozen

from ...storage.commands import ExecutionDetail
from ...storage.model.errors import (
    InvalidParameter,
    InvalidValue,
    TrioletError,
    error,
)
from ...storage.model.lineage import lineage_of
from ...storage.model.parameters import RESERVED_PREFIX
from ..plan.arguments import resolve
from ..plan.compile import CompiledJob


@error
class OtherInstance(TrioletError):
    """The parameters of a restart lead to another instance; nothing was written."""

    code = "other_instance"
    execution_id: int

    def __str__(self) -> str:
        """Say in one sentence what is wrong, where, and how to mend it."""
        return (
            "these parameters are not those of the instance of execution "
            f"{self.execution_id}: a secret one has another value, or the job declares "
            "others as identifying"
        )


@error
class ChildExecution(TrioletError):
    """A child is continued by its parent only; nothing was written."""

    code = "child_execution"
    execution_id: int
    parent_id: int
    node: str

    def __str__(self) -> str:
        """Say in one sentence what is wrong, where, and how to mend it."""
        return (
            f"execution {self.execution_id} is run by step {self.node!r} of execution "
            f"{self.parent_id}: restart that one"
        )


@frozen(kw_only=True)
class Restart:
    """What a restart launches."""

    parameters: Mapping[str, object]
    run: int | None
    reused: tuple[str, ...]
    """Parameters that are those of the execution; the others were given, or are
    defaults."""


def restart_of(
    detail: ExecutionDetail, job: CompiledJob, overrides: Mapping[str, object]
) -> Restart:
    """Collect the parameters of an execution for another attempt at its instance.

    Args:
        detail: Of the execution that is restarted.
        job: What is launched.
        overrides: Values for parameters that are not identifying, and for secret ones,
            which are not stored.

    Raises:
        InvalidValue: The execution is one of another job.
        ChildExecution: The execution is the child of another one.
        InvalidParameter: A secret parameter is missing, an identifying one would be
            changed, or one does not fit the job's declaration.
        OtherInstance: The parameters are not those of the execution's instance.
    """
    execution, instance = detail.execution, detail.instance
    if instance.job != job.plan.job:
        raise InvalidValue(
            f"execution {execution.id}",
            f"is one of job {instance.job!r}, not of job {job.plan.job!r}",
        )
    lineage = lineage_of(execution.parameters)
    if lineage is not None:
        raise ChildExecution(execution.id, lineage.execution_id, lineage.node)
    declared = {one.name: one for one in job.parameters}
    stored = [one for one in execution.parameters if not _reserved(one.name)]
    for one in stored:
        if one.secret and one.name not in overrides:
            reason = "is secret, and so it is not stored: give it again"
            raise InvalidParameter(one.name, reason)
    secret = {one.name for one in stored if one.secret}
    for name in overrides:
        known = declared.get(name)
        free = known is not None and (known.secret or not known.identifying)
        if name not in secret and not free and (known is not None or not declared):
            reason = "is identifying: a restart keeps it as it was"
            raise InvalidParameter(name, reason)
    reused = {one.name: one.value for one in stored if one.name not in overrides}
    given = {**reused, **overrides}
    parameters = resolve(job.parameters, given)
    if instance.run is not None:
        parameters = parameters.with_run(instance.run)
    if parameters.instance_key(instance.job) != instance.key:
        raise OtherInstance(execution.id)
    return Restart(parameters=given, run=instance.run, reused=tuple(sorted(reused)))


def _reserved(name: str) -> bool:
    return name.startswith(RESERVED_PREFIX)
