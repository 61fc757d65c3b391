"""How long the command line takes to say what it can do."""

import subprocess
import sys
import sysconfig
import time
from collections.abc import Sequence
from functools import partial
from pathlib import Path

from .benchmark import Benchmark, Workspace
from .rounds import compared, in_turns
from .rows import Row, check

TARGET = 2.5
ROUNDS = 15
IMPORT_TRIO = (sys.executable, "-c", "import trio")


def help_command() -> tuple[str, ...]:
    """Give the installed command, or its module when it is not installed."""
    script = Path(sysconfig.get_path("scripts"), "triolet")
    if script.exists():
        return (str(script), "--help")
    return (sys.executable, "-m", "triolet.actors.cli", "--help")


def milliseconds(command: Sequence[str], expected: str, folder: Path) -> float:
    """Time one process, which must succeed and print the expected word."""
    began = time.perf_counter()
    done = subprocess.run(command, capture_output=True, text=True, cwd=folder)
    took = time.perf_counter() - began
    check(done.returncode, 0, f"exit code of {' '.join(command)}\n{done.stderr}")
    check(expected in done.stdout, True, f"{expected!r} in the output")
    return took * 1000


def start(name: str, workspace: Workspace, rounds: int = ROUNDS) -> Row:
    """Measure the help text against the bare import of trio."""
    limit = partial(milliseconds, IMPORT_TRIO, "", workspace.folder)
    value = partial(milliseconds, help_command(), "run", workspace.folder)
    in_turns(limit, value, 1)  # the first of each fills the caches
    return compared(name, "ms", "lower", TARGET, in_turns(limit, value, rounds))


BENCHMARKS = (Benchmark("cli.start", start),)
