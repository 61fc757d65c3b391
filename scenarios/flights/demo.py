"""The demo: load the flights, kill the process in the middle, come back, check.

Run it with ``make demo``, or ``python -m scenarios.flights.demo``.
"""

import shutil
import signal
import sqlite3
import subprocess
import sys
import time
from pathlib import Path

from .job import REPORT, data_file
from .source import Summary, summary_of

FOLDER = Path("build") / "demo"
STORE = "flights.db"
TARGET = str(Path("..") / ".." / "scenarios" / "flights" / "job.py") + ":job"
KILL_AT_CHUNK = 168
"""Of 337: in the middle of the load."""
PATIENCE_SECS = 60


def main() -> int:
    """Play the story; 0 when everything was as promised."""
    shutil.rmtree(FOLDER, ignore_errors=True)
    FOLDER.mkdir(parents=True)
    say(f"Loading {data_file().name} into {FOLDER / STORE}, chunks of 1,000 rows.")
    killed_at = kill_in_the_middle()
    say(f"SIGKILL after {killed_at} committed chunks. What the store says:")
    triolet("show", "1")
    say("The same command again:")
    if triolet("run", TARGET) != 0:
        say("The job did not complete.")
        return 1
    say("What the second execution reused and decided:")
    triolet("show", "2")
    say("Its report:")
    print((FOLDER / REPORT).read_text(encoding="utf-8"))
    return check()


def say(sentence: str) -> None:
    """Print a heading."""
    print(f"\n>>> {sentence}", flush=True)


def command(*words: str) -> list[str]:
    """Make the command line of ``triolet`` in this environment."""
    store = ["--store", f"sqlite:///{STORE}"]
    return [sys.executable, "-m", "triolet.actors.cli", *words, *store]


def triolet(*words: str) -> int:
    """Run ``triolet`` to its end."""
    print("$ triolet " + " ".join(words), flush=True)
    return subprocess.run(command(*words), cwd=FOLDER, check=False).returncode


def kill_in_the_middle() -> int:
    """Start the job and kill it without warning; give the chunks committed by then."""
    print("$ triolet run " + TARGET, flush=True)
    child = subprocess.Popen(command("run", TARGET), cwd=FOLDER)
    deadline = time.monotonic() + PATIENCE_SECS
    while committed_chunks() < KILL_AT_CHUNK and child.poll() is None:
        if time.monotonic() > deadline:
            break
        time.sleep(0.005)
    child.send_signal(signal.SIGKILL)
    child.wait()
    return committed_chunks()


def committed_chunks() -> int:
    """Look into the store from outside."""
    path = FOLDER / STORE
    if not path.exists():
        return 0
    look = sqlite3.connect(path)
    try:
        row = look.execute(
            "SELECT max(commit_count) FROM triolet_step WHERE node = 'load'"
        ).fetchone()
    except sqlite3.OperationalError:
        # The schema is being made at this moment.
        return 0
    finally:
        look.close()
    return row[0] or 0


def check() -> int:
    """Compare the table with the source file."""
    expected = summary_of(data_file())
    look = sqlite3.connect(FOLDER / STORE)
    found = Summary(
        *look.execute("SELECT count(*), sum(arr_delay) FROM flights").fetchone()
    )
    look.close()
    say("The check against the source file:")
    print(f"rows       {found.rows:>12,}   expected {expected.rows:>12,}")
    print(f"delay sum  {found.delay_sum:>12,}   expected {expected.delay_sum:>12,}")
    print("equal: nothing lost, nothing twice" if found == expected else "DIFFERENT")
    return 0 if found == expected else 1


if __name__ == "__main__":
    sys.exit(main())
