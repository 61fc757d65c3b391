"""What ``doctor`` says of executions that no launch can continue."""

import json
import signal
from pathlib import Path

import pytest

from .conftest import Cli
from .programs import ended, spawn, until

JOBS = """
from pathlib import Path
import trio
from triolet.actors import Job, PartitionedStep, Split, Step

async def work(ctx):
    pass

async def waits(ctx):
    Path("began").touch()
    await trio.sleep_forever()

def once(work=waits):
    return Step("charge", work, restartable=False)

def parts(worker):
    return PartitionedStep("cards", worker, lambda ctx: [("a", {})])

step = Job("step", [once()])
branch = Job("branch", [Step("a", work), Split("both", [[once()], [Step("b", work)]])])
partition = Job("partition", [parts(once())])
done = Job("done", [once(work), Step("waits", waits)])
job = Job("whole", [Step("charge", waits)], restartable=False)
"""


def die(folder: Path, name: str) -> None:
    """Leave execution 1 of that job open, and nobody who works on it."""
    (folder / "once_jobs.py").write_text(JOBS)
    child = spawn("run", f"once_jobs.py:{name}", cwd=folder)
    until((folder / "began").exists)
    child.send_signal(signal.SIGKILL)
    ended(child)


@pytest.mark.parametrize(
    ("name", "node"), [("step", "charge"), ("branch", "charge"), ("partition", "cards")]
)
def test_a_step_that_must_not_run_again_is_named(
    folder: Path, cli: Cli, name: str, node: str
) -> None:
    die(folder, name)
    over = (
        f"step {node} is not restartable, so no launch continues it: "
        "'triolet run ... --new' runs it anew"
    )

    *_, proposal, last = cli("doctor").out.splitlines()

    assert proposal.startswith("  its owner is dead: the next launch takes it over, or")
    assert last == f"  {over}"
    assert "continues it," not in proposal
    (found,) = json.loads(cli("doctor", "--json").out)["data"]
    assert found["once_only"] == [node]
    settled = cli("doctor", "--settle", "--yes").out
    assert settled == f"execution 1 is FAILED: {over}\n"
    assert "not restartable" in cli("run", f"once_jobs.py:{name}").err


@pytest.mark.parametrize("name", ["done", "job"])
def test_what_the_store_cannot_know_is_not_promised(
    folder: Path, cli: Cli, name: str
) -> None:
    die(folder, name)

    assert cli("doctor").out.splitlines()[-1] == (
        "  its owner is dead: the next launch takes it over, or 'triolet doctor "
        "--settle' closes it"
    )
    assert cli("doctor", "--settle", "--yes").out == (
        "execution 1 is FAILED: the next launch continues it, unless the job is not "
        "restartable\n"
    )
