"""The command line opens as many connections as a job declares to need."""

from pathlib import Path

from tests.cli.programs import triolet

JOB = """
from triolet.actors import Job, PartitionedStep

def book(ctx):
    pass

def plan(ctx):
    return [(str(number), {}) for number in range(20)]

job = Job("wide", [PartitionedStep("book", book, plan, max_workers=8, pool_size=9)])
"""


def test_a_job_that_declares_nine_connections_runs_and_is_served(
    folder: Path, postgres_url: str
) -> None:
    (folder / "wide.py").write_text(JOB)
    store = {"TRIOLET_STORE": postgres_url}

    ran = triolet("run", "wide.py", "day=1", cwd=folder, **store)
    asked = triolet("enqueue", "wide.py", "day=2", cwd=folder, **store)
    served = triolet("serve", "wide.py", "--once", cwd=folder, **store)

    codes = (ran.returncode, asked.returncode, served.returncode)
    assert codes == (0, 0, 0), (ran.stderr, served.stderr)
    assert "1 done" in served.stdout
