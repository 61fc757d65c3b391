"""Whether anything may still come of an instance that did not complete."""

from collections.abc import Collection
from typing import TypeAlias

from ...storage.commands import StartLimitReached
from ...storage.model.status import BatchStatus
from ..plan.actions import PartitionReport, StepReport
from ..plan.barring import fails_job, is_barred
from ..plan.compile import CompiledJob
from ..plan.failures import StepNotRestartable, VisitLimitReached
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
    steps = (one for one in report.steps if _comes_again(report, one))
    parts = (
        one for one in report.partitions if one.began and _comes_again(report, one)
    )
    return any(
        is_barred(job.plan, one.node) or _child_is_over(job, one, over) for one in steps
    ) or any(is_barred(job.plan, one.node, partition=True) for one in parts)


def _comes_again(report: LaunchReport, one: StepReport | PartitionReport) -> bool:
    """Tell whether the next attempt comes to something that did not complete."""
    if one.reused:
        return False
    # Where a failed step led to a stop, the next attempt may go on behind it.
    return one.status is BatchStatus.STOPPED or (
        one.status is BatchStatus.FAILED and report.status is BatchStatus.FAILED
    )


def _child_is_over(job: CompiledJob, one: StepReport, over: Collection[Visit]) -> bool:
    # A listener that makes something else of the failure may do so again.
    if (one.node, one.visit) not in over or one.overridden is not None:
        return False
    return fails_job(job.plan, one.node)
