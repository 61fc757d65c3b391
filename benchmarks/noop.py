"""The job of ten steps that do nothing: what remains is the cost of the framework."""

import trio

from triolet.actors import BatchStatus, Job, LaunchReport, Runtime, Step
from triolet.actors.plan.compile import compile_job

from .rows import check

STEPS = 10


async def _nothing(_: object) -> None:
    pass


JOB = compile_job(Job("noop", [Step(f"step-{n}", _nothing) for n in range(STEPS)]))


async def launch_one(runtime: Runtime, number: int) -> None:
    """Launch an instance of its own and look whether all its steps were run."""
    _check(await runtime.launch(JOB, number=number))


async def launch_in_turn(runtime: Runtime, first: int, jobs: int) -> None:
    """Launch *jobs* instances one after another, numbered from *first*."""
    for number in range(first, first + jobs):
        await launch_one(runtime, number)


async def launch_at_once(runtime: Runtime, jobs: int) -> None:
    """Launch *jobs* instances side by side."""
    async with trio.open_nursery() as nursery:
        for number in range(jobs):
            nursery.start_soon(launch_one, runtime, number)


def _check(report: LaunchReport) -> None:
    ran = [step for step in report.steps if step.status is BatchStatus.COMPLETED]
    check(report.status, BatchStatus.COMPLETED, "the job's status")
    check((len(ran), report.attempt), (STEPS, 1), "steps completed, attempt")
