"""Whether anything may still come of an instance that did not complete."""

from collections.abc import Collection
from typing import TypeAlias

from ...storage.commands import StartLimitReached
from ...storage.model.status import BatchStatus
from ..plan.actions import PartitionReport, StepReport
from ..plan.compile import CompiledJob
from ..plan.failures import StepNotRestartable, VisitLimitReached
from ..plan.plan import PartitionedNode, StepNode
from .report import LaunchReport

Visit: TypeAlias = tuple[str, int]
"""A node and which visit of it."""

_FOR_GOOD = {
    one.code for one in (StartLimitReached, VisitLimitReached, StepNotRestartable)
}
"""Failures that every later attempt would come to again."""


def is_over(
    job: CompiledJob, report: LaunchReport, over: Collection[Visit] = ()
) -> bool:
    """Tell whether no later launch can continue what ended FAILED or STOPPED.

    Args:
        job: As it was launched.
        report: Of the launch.
        over: Steps whose children cannot be continued.
    """
    if not report.status.restartable:
        return False
    failure = report.failure
    if not job.restartable or (failure is not None and failure.code in _FOR_GOOD):
        return True
    ran: list[StepReport | PartitionReport] = [*report.steps]
    ran += [one for one in report.partitions if one.began]
    return any(
        _did_not_complete(report, one)
        and ((one.node, one.visit) in over or _runs_once(job, one))
        for one in ran
    )


def _did_not_complete(report: LaunchReport, one: StepReport | PartitionReport) -> bool:
    """Tell whether the next attempt comes to it again."""
    if one.reused:
        return False
    # Where a failed step led to a stop, the next attempt may go on behind it.
    return one.status is BatchStatus.STOPPED or (
        one.status is BatchStatus.FAILED and report.status is BatchStatus.FAILED
    )


def _runs_once(job: CompiledJob, one: StepReport | PartitionReport) -> bool:
    node = job.plan.every.get(one.node)
    if isinstance(node, PartitionedNode) and isinstance(one, PartitionReport):
        node = node.worker
    return isinstance(node, StepNode) and not node.restartable
