"""Every part of what a disturbed run did counts, not only what it came to."""

from collections.abc import Callable
from typing import Any

import pytest
from attrs import evolve

from triolet.actors import BatchStatus, InvalidValue, Job, Step, StepContext
from triolet.actors.job.committing import Commits
from triolet.actors.testing import (
    Ending,
    EquivalenceError,
    Fault,
    How,
    Interrupted,
    Interruption,
    Run,
    Scenario,
    Variant,
    cancel_at_every_checkpoint,
)
from triolet.actors.testing.proof import wrong


async def nothing(ctx: StepContext) -> None:
    pass


RUN = Scenario(Job("calm", [Step("a", nothing)])).run()
STOPPED = Ending(status=BatchStatus.STOPPED)
LEFT = Interrupted(report=None, ending=STOPPED)
OPEN = evolve(STOPPED, status=BatchStatus.STARTED, unresolved=("attempt 1 is STARTED",))
LAST = Interruption(len(RUN.steps), How.STOP)
DEATH = Fault(1, Variant.DIE_AFTER)


def run(**changes: Any) -> Callable[[], Run]:
    return lambda: evolve(RUN, **changes)


@pytest.mark.parametrize(
    "other",
    [
        run(),
        run(interrupted=(LEFT,), reached=(LAST,)),
        run(interrupted=(evolve(LEFT, ending=RUN.ending),), reached=(LAST,)),
        run(interrupted=(evolve(LEFT, ending=Ending()),), reached=(LAST,)),
        run(interrupted=(evolve(LEFT, ending=OPEN),), reached=(DEATH, LAST), crashes=1),
        run(commits=(RUN.commits[0], "more"), reached=(DEATH,), crashes=1),
        run(steps=(*RUN.steps, "more"), reached=(LAST,)),
    ],
)
def test_what_may_be_is_not_wrong(other: Callable[[], Run]) -> None:
    assert list(wrong(RUN, other())) == []


@pytest.mark.parametrize(
    ("other", "line"),
    [
        (run(crashes=1), "1 launches died, 0 were to"),
        (run(reached=(DEATH,)), "0 launches died, 1 were to"),
        (run(reports=RUN.reports * 2), "2 launches were needed, undisturbed 1"),
        (run(commits=("other",)), "it should begin ["),
        (run(commits=("other",), reached=(DEATH,), crashes=1), "it should begin ["),
        (run(steps=("other",)), "it consists of other task steps"),
        (run(steps=("other",), reached=(LAST,)), "it consists of other task steps"),
        (run(ending=STOPPED), "the job's status should be COMPLETED, is STOPPED"),
        (
            run(interrupted=(evolve(LEFT, ending=OPEN),), reached=(LAST,)),
            "the interrupted launch left behind: attempt 1 is STARTED",
        ),
        (
            run(
                interrupted=(evolve(LEFT, report=RUN.reports[0]),),
                reached=(LAST,),
            ),
            "the interrupted launch reported COMPLETED, left STOPPED",
        ),
        (
            run(
                interrupted=(
                    evolve(LEFT, ending=evolve(STOPPED, status=BatchStatus.FAILED)),
                ),
                reached=(LAST,),
            ),
            "the interrupted launch left the job FAILED",
        ),
    ],
)
def test_what_may_not_be_is_said(other: Callable[[], Run], line: str) -> None:
    assert line in "\n".join(wrong(RUN, other()))


def test_a_cancelled_launch_that_closes_nothing_is_found(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def silent(*args: object) -> None:
        pass

    monkeypatch.setattr(Commits, "last_word", silent)
    with pytest.raises(EquivalenceError, match="launch left behind: attempt 1 is STAR"):
        cancel_at_every_checkpoint(Scenario(Job("calm", [Step("a", nothing)])))


def test_only_a_scenario_is_swept() -> None:
    job: Any = Job("calm", [Step("a", nothing)])
    with pytest.raises(InvalidValue, match="must be of type Scenario, not Job"):
        cancel_at_every_checkpoint(job)
