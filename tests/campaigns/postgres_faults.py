"""Random faults over concurrent jobs on PostgreSQL; in the end all is as undisturbed.

    python -m tests.campaigns.postgres_faults --faults 200 --seed 7

Two processes run jobs on one server behind a proxy, which cuts the connection before
COMMIT is sent, after it was carried out, or holds it; backends are terminated, the
server is restarted at once, processes are killed. Afterwards every job that was begun
must have completed as it would have alone (`ending_of`), with each of its rows there
once, and nothing active or UNKNOWN.
"""

import argparse
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from random import Random
from uuid import UUID

import psycopg
import trio
from attrs import define, field

from tests.postgres.proxy import Proxy
from tests.postgres.server import Server
from triolet.actors import RuntimeOptions, open_runtime
from triolet.actors.testing.equivalence import Ending, differences, ending_of
from triolet.storage.backend import Backend, run
from triolet.storage.commands import ListExecutions
from triolet.storage.memory import MemoryBackend
from triolet.storage.stores import host_clock, open_store

from .fault_jobs import SHAPES, TABLE, effects_of, job_of, name_of
from .fault_worker import SLOTS

ROOT = Path(__file__).parents[2]
WORKERS = 2
CALM_SECS = (0.02, 0.5)
HELD_SECS = (0.1, 1.5)
COMMITS_MAX = 30
FIRED_SECS = 5.0
END_SECS = 120.0


@define
class Campaign:
    """The server, the processes on it, and what was done to them."""

    server: Server
    proxy: Proxy
    folder: Path
    random: Random
    workers: list[subprocess.Popen[bytes]] = field(factory=list)
    done: Counter[str] = field(factory=Counter)

    def start(self, worker: int) -> subprocess.Popen[bytes]:
        slots = [str(slot) for slot in range(worker, SLOTS, WORKERS)]
        words = ["-m", "tests.campaigns.fault_worker", self.proxy.url, str(self.folder)]
        return subprocess.Popen([sys.executable, *words, *slots], cwd=ROOT)

    def cut_before_commit(self) -> None:
        self._at_a_commit("before_commit")

    def cut_after_commit(self) -> None:
        self._at_a_commit("after_commit_before_answer")

    def hold(self) -> None:
        self._at_a_commit("hold")
        time.sleep(self.random.uniform(*HELD_SECS))

    def _at_a_commit(self, phase: str) -> None:
        nth = self.random.randint(1, COMMITS_MAX)
        self.proxy.arm(phase, nth)  # type: ignore[arg-type]  # one of its phases
        self.proxy.fired.wait(FIRED_SECS)

    def cut_now(self) -> None:
        self.proxy.arm("cut_now")

    def refuse(self) -> None:
        self.proxy.arm("refuse")
        self.proxy.arm("cut_now", then_refuse=True)
        time.sleep(self.random.uniform(*HELD_SECS))

    def terminate(self) -> None:
        with psycopg.connect(self.server.url("faults"), autocommit=True) as admin:
            admin.execute(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
                "WHERE application_name LIKE 'triolet %%' AND random() < 0.7"
            )

    def restart(self) -> None:
        self.server.restart("immediate")

    def kill(self) -> None:
        worker = self.random.randrange(WORKERS)
        self.workers[worker].send_signal(signal.SIGKILL)
        self.workers[worker].wait()
        self.workers[worker] = self.start(worker)
        time.sleep(self.random.uniform(0.3, 1.0))

    def disturb(self, faults: int) -> None:
        """Do that many faults, one after another, and let the jobs end."""
        kinds: dict[Callable[[], None], int] = {
            self.cut_before_commit: 5,
            self.cut_after_commit: 5,
            self.hold: 2,
            self.cut_now: 3,
            self.refuse: 1,
            self.terminate: 3,
            self.restart: 2,
            self.kill: 3,
        }
        self.workers = [self.start(worker) for worker in range(WORKERS)]
        for _ in range(faults):
            time.sleep(self.random.uniform(*CALM_SECS))
            (fault,) = self.random.choices(list(kinds), list(kinds.values()))
            fault()
            self.proxy.heal()
            self.done[fault.__name__] += 1
            for worker in self.workers:
                if worker.poll():
                    raise RuntimeError("a process ended with an error of its own")
        (self.folder / "stop").touch()
        for worker in self.workers:
            if worker.wait(END_SECS):
                raise RuntimeError("a process ended with an error of its own")


def undisturbed(number: int) -> Ending:
    """Run a job of the same shape alone, in memory."""
    backend = MemoryBackend(host_clock)

    async def alone() -> None:
        async with open_runtime(backend, RuntimeOptions(inline=True)) as runtime:
            await runtime.launch(job_of(number))

    backend._tables.business.connection.execute(TABLE)
    trio.run(alone)
    return ending_of(backend, {}, name_of(number))


def wrong(url: str) -> Iterator[str]:
    """Compare every job in the store with the undisturbed one of its shape."""
    backend = open_store(url)
    wanted = {shape: undisturbed(shape) for shape in range(SHAPES)}
    with psycopg.connect(url) as admin:
        rows: dict[str, list[str]] = {}
        for job, what in admin.execute(
            "SELECT job, what FROM effect ORDER BY job, what"
        ):
            rows.setdefault(job, []).append(what)
    for number in numbers_in(backend):
        name = name_of(number)
        found = ending_of(backend, {}, name)
        for line in differences(wanted[number % SHAPES], found):
            yield f"{name}: {line}"
        if sorted(rows.get(name, [])) != effects_of(number):
            yield f"{name}: its rows are not there once each"
    backend.close()


def numbers_in(backend: Backend) -> list[int]:
    """List the jobs that were begun."""
    found: set[int] = set()
    before = None
    while True:
        page = run(backend, UUID(int=0), ListExecutions(limit=500, before=before))
        found |= {int(line.instance.job.rsplit("-", 1)[1]) for line in page.lines}
        if not page.more:
            return sorted(found)
        before = page.lines[-1].execution.id


def main() -> int:
    """Run the command line; give the exit code."""
    parser = argparse.ArgumentParser(prog="python -m tests.campaigns.postgres_faults")
    parser.add_argument("--faults", type=int, default=200)
    parser.add_argument("--seed", type=int, default=7)
    options = parser.parse_args()
    sys.stdout.write(report(options.faults, options.seed) + "\n")
    return 0


class Different(AssertionError):
    """Something is not as it would have been undisturbed."""


def report(faults: int, seed: int) -> str:
    """Do the campaign and say what was done.

    Raises:
        Different: With every difference, and the seed.
    """
    folder = Path(tempfile.mkdtemp(prefix="triolet-faults-"))
    began = time.monotonic()
    try:
        with Server() as server:
            url = server.create_database("faults")
            with psycopg.connect(url, autocommit=True) as admin:
                admin.execute(TABLE)
            open_store(url).close()
            with Proxy(url) as proxy:
                campaign = Campaign(server, proxy, folder, Random(seed))
                try:
                    campaign.disturb(faults)
                finally:
                    for worker in campaign.workers:
                        worker.kill()
                        worker.wait()
            different = list(wrong(url))
            backend = open_store(url)
            jobs = len(numbers_in(backend))
            backend.close()
    except BaseException:
        sys.stderr.write(f"seed {seed}; logs are in {folder}\n")
        raise
    if different:
        raise Different(f"seed {seed}, logs in {folder}:\n" + "\n".join(different))
    shutil.rmtree(folder)
    what = ", ".join(f"{count} {name}" for name, count in sorted(campaign.done.items()))
    took = time.monotonic() - began
    return f"{faults} faults (seed {seed}: {what}) over {jobs} jobs in {took:.0f} s: 0 different"


if __name__ == "__main__":
    sys.exit(main())
