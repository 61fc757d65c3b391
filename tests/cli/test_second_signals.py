"""The signal that ends a process at once: what it says of what is left, also as JSON."""

import json
import signal
import subprocess
from pathlib import Path
from typing import Any

import pytest

from .programs import ended, put, spawn, statuses, until

JOBS = """
import time
from pathlib import Path
from triolet.actors import Job, JobStep, PartitionedStep, Split, Step

def work(ctx):
    pass

def fails(ctx):
    raise ValueError("declined")

def waits(ctx):
    Path("began").touch()
    while True:
        time.sleep(0.01)

def once(work=waits, **settings):
    return Step("charge", work, restartable=False, **settings)

whole = Job("whole", [Step("charge", waits)], restartable=False)
step = Job("step", [once()])
parts = Job("parts", [PartitionedStep("cards", once(), lambda ctx: [("a", {})])])
failed = Job("failed", [once(fails, then={"FAILED": "mend", "*": "mend"}), Step("mend", waits)])
child = Job("outer", [JobStep("run", whole)])
inner = Job("outer", [JobStep("run", step)])

done = Job("done", [once(work), Step("next", waits)])
route = Job("route", [JobStep("run", whole, then={"FAILED": "mend", "*": "mend"}),
                      Step("mend", work)])
"""
CONTINUES = "the next launch continues from the last commit"
ANEW = "is not restartable, so no launch continues it: 'triolet run ... --new' runs it anew"


def twice(child: "subprocess.Popen[str]", began: Path) -> tuple[int, str, str]:
    """Interrupt it once it has begun, and again."""
    until(began.exists)
    assert child.stderr is not None
    child.send_signal(signal.SIGINT)
    while "a second Ctrl-C" not in child.stderr.readline():
        pass
    child.send_signal(signal.SIGINT)
    return ended(child)


def document(out: str) -> dict[str, Any]:
    assert out.count("\n") == 1, out
    found: dict[str, Any] = json.loads(out)
    assert (found["outcome"], found["exit_code"]) == ("error", 130)
    return found


@pytest.mark.parametrize(
    ("job", "outlook"),
    [
        ("whole", f"job whole {ANEW}"),
        ("step", f"step charge {ANEW}"),
        ("parts", f"step cards {ANEW}"),
        ("failed", f"step charge {ANEW}"),
        ("child", f"step run {ANEW}"),
        ("inner", f"step charge {ANEW}"),
        ("done", CONTINUES),
        ("route", CONTINUES),
    ],
)
def test_what_is_left_is_told_as_it_is(tmp_path: Path, job: str, outlook: str) -> None:
    (tmp_path / "once_jobs.py").write_text(JOBS)
    child = spawn("run", f"once_jobs.py:{job}", cwd=tmp_path)

    code, out, err = twice(child, tmp_path / "began")

    assert (code, out) == (130, "")
    assert err.splitlines()[-1] == f"triolet: ended at once; {outlook}"


def test_the_one_object_says_what_is_left(tmp_path: Path) -> None:
    target = put(tmp_path, "blocks")
    child = spawn("run", target, "--json", cwd=tmp_path)

    code, out, _ = twice(child, tmp_path / "began")

    assert code == 130
    assert document(out) == {
        "schema_version": 1,
        "command": "run",
        "outcome": "error",
        "exit_code": 130,
        "data": {"job": "blocks", "execution_id": 1},
        "diagnostics": [
            {"code": "interrupted", "message": f"ended at once; {CONTINUES}"}
        ],
    }


def test_serving_says_what_was_served(tmp_path: Path) -> None:
    target = put(tmp_path, "blocks")
    ended(spawn("enqueue", target, cwd=tmp_path))
    child = spawn("serve", target, "--json", cwd=tmp_path)

    code, out, err = twice(child, tmp_path / "began")

    assert code == 130
    found = document(out)
    assert found["command"] == "serve"
    assert found["data"] == {"done": 0, "refused": 0, "given_back": 0}
    assert "ended at once; whoever serves next takes over what ran" in err


def test_other_commands_print_the_object_as_well(tmp_path: Path) -> None:
    child = spawn("run", put(tmp_path, "blocks"), cwd=tmp_path)
    until((tmp_path / "began").exists)
    stop = spawn("stop", "1", "--wait", "--json", cwd=tmp_path)
    until(lambda: statuses(tmp_path) == ["STOPPING"])

    stop.send_signal(signal.SIGINT)
    code, out, _ = ended(stop)

    (tmp_path / "go").touch()
    ended(child)
    assert code == 130
    found = document(out)
    assert (found["command"], found["data"]) == ("stop", None)
    assert found["diagnostics"][0]["code"] == "interrupted"
