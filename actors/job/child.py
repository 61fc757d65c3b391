"""The work of a step that runs another job.

The child is found again by the step and the instance that it belongs to, so a restart
of the parent continues it; what it was given first is what it is always given.
"""

from collections.abc import Mapping

import trio
from attrs import define, field

from ...storage.commands import (
    AlreadyRunning,
    DefinitionDrift,
    IncompatibleDefinition,
    InstanceAbandoned,
    InstanceComplete,
    LatestExecution,
    LeaseLost,
    NotRestartable,
    OutcomeUnresolved,
    ShowExecution,
)
from ...storage.envelope import CONTEXT_FORMAT, STATE_SCHEMA, seal
from ...storage.model.errors import InvalidValue, TrioletError, with_article
from ...storage.model.execution import ExitCode, Failure, JobExecution
from ...storage.model.lineage import Lineage, without_lineage
from ...storage.model.parameters import ParameterSet
from ...storage.model.status import BatchStatus, FailureCategory
from ..kernel.inspecting import ActorState
from ..plan.actions import OpenStep, StepResult
from ..plan.children import child_parameters
from ..plan.compile import CompiledJob
from ..plan.definition import Step
from ..plan.job_steps import ChildJob
from .boundary import Where
from .context import StepContext
from .nested import CHILD_STATE, Child, ChildLaunch
from .report import LaunchReport
from .step import Environment, failed
from .wording import failure_summary

REFUSALS = (
    AlreadyRunning,
    DefinitionDrift,
    IncompatibleDefinition,
    InstanceAbandoned,
    InvalidValue,
    NotRestartable,
    OutcomeUnresolved,
)
"""Why a child may not begin; whatever else is raised concerns the store or the parent."""
FOR_GOOD = (InstanceAbandoned, NotRestartable)
"""Those that every later attempt would come to again."""


@define(eq=False)
class ChildRun:
    """One run of a step's child."""

    step: Step
    work: ChildJob
    row: OpenStep
    ctx: StepContext
    environment: Environment
    _child: Child | None = field(default=None, init=False)
    """While it runs."""

    async def run(self) -> StepResult:
        """Run the child to its end, or take over how it has ended already."""
        job, lineage = self._job, self._lineage
        key = lineage.instance_key(job.job)
        store = self.environment.store
        latest = await store.ask(LatestExecution(job.job, key))
        before = None if latest is None else latest.execution
        if before is not None and before.status is BatchStatus.COMPLETED:
            return self._ended_as(before)
        own = await self._parameters(before)
        if self.ctx.stop.is_set():
            return StepResult(status=BatchStatus.STOPPED, exit_code=ExitCode.STOPPED)
        launch = ChildLaunch(
            job=job, parameters=lineage.of_child(own), store=store, stop=self.ctx.stop
        )
        try:
            child = await self.environment.open_child(launch)
        except InstanceComplete as exc:
            found = await store.ask(ShowExecution(exc.execution_id))
            return self._ended_as(found.execution)
        except REFUSALS as exc:
            if isinstance(exc, FOR_GOOD):
                self._cannot_go_on()
            return failed(self._refusal(exc))
        self._child = child
        try:
            report = await child.run()
        except LeaseLost as exc:
            # Its own: whether the parent's is lost, too, its next command says.
            return failed(self._refusal(exc))
        finally:
            self._child = None
        if report.over:
            self._cannot_go_on()
        return self._ended_as(report)

    def stop(self, scope: trio.CancelScope) -> None:
        """Stop the child by its own rules, or cancel what comes before it begins."""
        if self._child is None:
            scope.cancel()
        else:
            self._child.stop()

    def inside(self) -> tuple[ActorState, ...]:
        """Show the child, if it runs."""
        return () if self._child is None else (self._child.inspect(),)

    def _cannot_go_on(self) -> None:
        """Note that a later attempt at the parent would come to the same."""
        self.environment.over.add((self.row.node.id, self.row.visit))

    @property
    def _job(self) -> CompiledJob:
        assert self.work.compiled is not None, "the job was not compiled"
        return self.work.compiled

    @property
    def _lineage(self) -> Lineage:
        ctx = self.ctx
        return Lineage(ctx.instance_id, ctx.path, ctx.execution_id, ctx.visit)

    async def _parameters(self, before: JobExecution | None) -> ParameterSet:
        """Give those of the child's earlier attempts, or make them for the first one."""
        given: Mapping[str, object] = {}
        stored = () if before is None else tuple(without_lineage(before.parameters))
        if before is None or any(one.secret for one in stored):
            given = await self._given()
        kept = {one.name: one.value for one in stored if not one.secret}
        try:
            return child_parameters(
                self.work, {**given, **kept}, self.ctx.execution.parameters
            )
        except TrioletError as exc:
            raise self.environment.boundary.failed(self._where, exc) from exc

    async def _given(self) -> Mapping[str, object]:
        parameters = self.work.parameters
        if isinstance(parameters, Mapping):
            return parameters
        boundary = self.environment.boundary
        returned = await boundary.call(self._where, parameters, self.ctx)
        if isinstance(returned, Mapping):
            return returned
        kind = with_article(type(returned).__name__)
        raise boundary.refusal(
            self._where,
            f"the parameters of job {self._job.job!r} must be a dict, not {kind}",
        )

    @property
    def _where(self) -> Where:
        return Where(self.step.id, "parameters_failed")

    def _ended_as(self, end: LaunchReport | JobExecution) -> StepResult:
        """Make the step's result of how the child has ended."""
        job = self._job.job
        execution_id = end.id if isinstance(end, JobExecution) else end.execution_id
        self.row.counts = end.counts
        state = {CHILD_STATE: {"job": job, "execution_id": execution_id}}
        failure = None
        if end.status in (BatchStatus.FAILED, BatchStatus.UNKNOWN):
            failure = self._failure(execution_id, end)
        return StepResult(
            status=end.status,
            exit_code=self.work.exits.get(end.exit_code, end.exit_code),
            failure=failure,
            context=seal(CONTEXT_FORMAT, STATE_SCHEMA, state, "the state of a step"),
        )

    def _failure(self, execution_id: int, end: LaunchReport | JobExecution) -> Failure:
        inner = end.failure
        text = f"execution {execution_id} of job {self._job.job!r} {end.status}"
        if inner is not None:
            text = f"{text}: {failure_summary(inner)}"
        boundary = self.environment.boundary
        return Failure(
            FailureCategory.USER_COMPONENT if inner is None else inner.category,
            boundary.new_failure_id(),
            "child_not_completed",
            self.step.id,
            None,
            boundary.cleaned(text),
            None if inner is None else inner.place,
        )

    def _refusal(self, exc: TrioletError) -> Failure:
        boundary = self.environment.boundary
        return Failure(
            FailureCategory.USER_COMPONENT,
            boundary.new_failure_id(),
            exc.code,
            self.step.id,
            None,
            boundary.cleaned(f"job {self._job.job!r} could not be run: {exc}"),
        )
