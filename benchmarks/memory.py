"""The framework's own cost: CPU time of a no-op step on the memory backend."""

import time

import trio
from attrs import frozen

from triolet.actors import Runtime, open_runtime

from .benchmark import Benchmark, Workspace
from .noop import STEPS, launch_in_turn, launch_one
from .rounds import ROUNDS, Round, bounded, compared
from .rows import Row, check

MICROSECONDS_MAX = 80.0
CHECKPOINT_MICROSECONDS = 2.6
"""What a checkpoint took on the machine for which the bound was set."""
JOBS = 200
EXECUTIONS_BEFORE = 2000
PAGE = 1_000_000


@frozen(kw_only=True)
class Size:
    """How much is measured."""

    jobs: int = JOBS
    before: int = EXECUTIONS_BEFORE
    rounds: int = ROUNDS


FULL_SIZE = Size()


async def _cpu_per_step(runtime: Runtime, first: int, jobs: int) -> float:
    """Give microseconds of CPU for each step, launches and their checks included."""
    began = time.process_time()
    await launch_in_turn(runtime, first, jobs)
    return (time.process_time() - began) / (jobs * STEPS) * 1e6


async def measure_cpu(size: Size) -> tuple[list[float], list[float]]:
    """Measure on an empty store and on one with history, in turns."""
    empty, filled = [], []
    async with open_runtime("memory:") as old:
        await launch_in_turn(old, 0, size.before)
        for turn in range(size.rounds):
            async with open_runtime("memory:") as fresh:
                await launch_one(fresh, -1)
                empty.append(await _cpu_per_step(fresh, 0, size.jobs))
            first = size.before + turn * size.jobs
            filled.append(await _cpu_per_step(old, first, size.jobs))
        page = await old.list(limit=PAGE)
    executions = size.before + size.rounds * size.jobs
    check(len(page.lines), executions, "executions in the store")
    return empty, filled


async def checkpoint_cpu(checkpoints: int = 20_000) -> float:
    """Give microseconds of CPU for one pass of trio's scheduler, the yardstick here."""
    began = time.process_time()
    for _ in range(checkpoints):
        await trio.lowlevel.checkpoint()
    return (time.process_time() - began) / checkpoints * 1e6


def step_cpu(name: str, _: Workspace, size: Size = FULL_SIZE) -> Row:
    """Report the worse of the two stores."""
    rows = [
        bounded(name, "us of CPU per step", MICROSECONDS_MAX, values)
        for values in trio.run(measure_cpu, size)
    ]
    return max(rows, key=lambda row: row.value)


async def measure_scaled(size: Size) -> list[Round]:
    """Measure a checkpoint and a step in turns; the bound is scaled by the former."""
    rounds = []
    for _ in range(size.rounds):
        bound = await checkpoint_cpu() / CHECKPOINT_MICROSECONDS * MICROSECONDS_MAX
        async with open_runtime("memory:") as runtime:
            await launch_one(runtime, -1)
            rounds.append(Round(bound, await _cpu_per_step(runtime, 0, size.jobs)))
    return rounds


def step_cpu_scaled(name: str, _: Workspace, size: Size = FULL_SIZE) -> Row:
    """Compare with the bound as it would be on a machine of this speed."""
    rounds = trio.run(measure_scaled, size)
    return compared(name, "us of CPU per step", "lower", 1.0, rounds)


BENCHMARKS = (
    Benchmark("memory.step_cpu", step_cpu),
    Benchmark("memory.step_cpu_scaled", step_cpu_scaled),
)
