"""What the command line tells of jobs, steps and partitions that never run again."""

from pathlib import Path

import pytest

from tests.cli.conftest import Cli

JOBS = """
from triolet.actors import Decision, FAIL, Job, PartitionedStep, Split, Step, STOP

def fails(ctx):
    raise ValueError("declined")

def breaks(ctx):
    if ctx.partition.ordinal == 2:
        raise ValueError("declined")

def work(ctx):
    pass

def three(ctx):
    return [(f"card {at}", {}) for at in "abc"]

def once(function):
    return Step("once", function, restartable=False)

job = Job("whole", [Step("charge", fails)], restartable=False)
held = Job("held", [Step("charge", work, then={"*": STOP})], restartable=False)
step = Job("step", [once(fails)])
parts = Job("parts", [
    PartitionedStep("cards", once(breaks), three, on_failure="drain_siblings")])
limit = Job("limit", [Step("charge", fails, start_limit=1)])
later = Job("later", [once(work), Step("report", fails)])
again = Job("again", [
    PartitionedStep("cards", Step("card", work), three, allow_start_if_complete=True),
    Step("report", fails)])

def beside(name, *others, **settings):
    return Job(name, [
        Step("first", work), Split("both", [once(fails), [*others]], **settings)])

cancelled = beside("cancelled", Step("b", work), Step("c", fails))
drained = beside("drained", Step("b", work), Step("c", fails), on_failure="drain_siblings")
asked = beside("asked", Step("b", work), Decision("d", fails, then={"*": FAIL}),
    on_failure="drain_siblings")
"""
OVER = "  it cannot be continued: 'triolet run ... --new' runs it anew"


@pytest.fixture(autouse=True)
def jobs(folder: Path) -> None:
    (folder / "once_jobs.py").write_text(JOBS)


@pytest.mark.parametrize(
    ("job", "code"), [("job", 11), ("held", 12), ("step", 11), ("parts", 11)]
)
def test_what_never_runs_again_is_only_proposed_anew(
    cli: Cli, job: str, code: int
) -> None:
    said = cli("run", f"once_jobs.py:{job}")

    assert (said.code, said.out.splitlines()[-1]) == (code, OVER)
    assert "same command" not in said.out
    assert cli("run", f"once_jobs.py:{job}", "--new").out.splitlines()[-1] == OVER


@pytest.mark.parametrize("job", ["step", "parts", "limit"])
def test_what_was_refused_is_refused_again(cli: Cli, job: str) -> None:
    cli("run", f"once_jobs.py:{job}")

    said = cli("run", f"once_jobs.py:{job}")

    assert (said.code, said.out.splitlines()[-1]) == (11, OVER)


def test_a_step_that_completed_does_not_keep_the_job_from_going_on(cli: Cli) -> None:
    for _ in range(2):
        said = cli("run", "once_jobs.py:later")
        assert said.out.splitlines()[-1].startswith("  to continue it, mend the cause")


def test_a_step_that_is_planned_afresh_has_no_partitions_yet(cli: Cli) -> None:
    cli("run", "once_jobs.py:again")

    said = cli("run", "once_jobs.py:again", "--dry-run")

    assert "  cards   would run  it runs again in every attempt\n" in said.out


def test_a_preview_tells_of_a_partition_that_must_not_run_again(cli: Cli) -> None:
    cli("run", "once_jobs.py:parts")

    (_, cards, end) = cli("run", "once_jobs.py:parts", "--dry-run").out.splitlines()

    assert cards == (
        "  cards  would run  2 of its 3 partitions have completed, 1 must not run again"
    )
    assert end == (
        "and end FAILED: the 2nd partition of step 'cards' began in an earlier attempt, "
        "is FAILED and not restartable: run the job anew with 'triolet run ... --new' "
        "(anew=True)"
    )
    assert "the 2nd partition of step 'cards'" in cli("run", "once_jobs.py:parts").err


@pytest.mark.parametrize("job", ["cancelled", "drained", "asked"])
def test_a_preview_tells_that_a_branch_is_bound_to_fail(cli: Cli, job: str) -> None:
    cli("run", f"once_jobs.py:{job}")

    said = cli("run", f"once_jobs.py:{job}", "--dry-run")

    lines = said.out.splitlines()
    assert lines[-1].startswith("and end FAILED: step 'once' began in an earlier")
    cancels = [line for line in lines if "cancelled as soon as" in line]
    # What the branches beside it complete is not undone.
    assert bool(cancels) is (job == "cancelled")
