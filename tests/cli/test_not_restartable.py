"""What the command line tells of jobs, steps and partitions that never run again."""

from pathlib import Path

import pytest

from tests.cli.conftest import Cli

JOBS = """
from triolet.actors import Job, PartitionedStep, Split, Step, STOP

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
"""
OVER = "  it cannot be continued: give the command with --new to run it anew"


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
