"""Random branches: whatever ends first, and however many run, the result is the same.

The measure is one branch after the other, in declared order. Siblings are drained, as
how far a sibling comes before it is cancelled is a matter of time.
"""

import logging
from collections.abc import Callable, Iterator
from itertools import count
from random import Random
from typing import Any, TypeAlias

import pytest
import trio
import trio.testing
from attrs import define, field, frozen
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.job.harness import Store, job, launch
from tests.storage.backends import Clock
from triolet.actors import (
    COMPLETE,
    FAIL,
    STOP,
    DeciderContext,
    Decision,
    Exit,
    LaunchReport,
    Node,
    PartitionedStep,
    Split,
    Step,
    StepContext,
)
from triolet.actors.testing.scheduling import seeded_scheduling
from triolet.storage.model.execution import Terminal

Function: TypeAlias = Callable[..., Any]
LAUNCHES = 3
CODES = ("COMPLETED", "A", "B")


@frozen
class Work:
    """A step: what its attempts come to, and whether rules lead on from a failure."""

    outcomes: tuple[str, ...]
    then: Terminal | None
    """Where code B leads."""
    forgives: bool


@frozen
class Choice:
    """A decision: its answers, and where answer B leads."""

    answers: tuple[str, ...]
    then: Terminal | None


@frozen
class Parts:
    """A partitioned step: what each partition's attempts come to."""

    outcomes: tuple[tuple[str, ...], ...]
    forgives: bool


@frozen
class Fork:
    """A split, and whether its join leads on from a failure."""

    branches: "tuple[Flow, ...]"
    forgives: bool


Spec: TypeAlias = Work | Choice | Parts | Fork
Flow: TypeAlias = tuple[Spec, ...]

outcomes = st.lists(st.sampled_from([*CODES, "FAILS"]), min_size=1, max_size=3)
ends = st.sampled_from([None, None, COMPLETE, FAIL, STOP])
leaves: st.SearchStrategy[Spec] = st.one_of(
    st.builds(Work, outcomes.map(tuple), ends, st.booleans()),
    st.builds(
        Parts,
        st.lists(outcomes.map(tuple), max_size=3).map(tuple),
        st.booleans(),
    ),
    st.builds(Work, st.just(("COMPLETED",)), st.none(), st.just(False)),
    st.builds(
        Choice,
        st.lists(st.sampled_from(CODES), min_size=1, max_size=3).map(tuple),
        ends,
    ),
)


def _flows(depth: int) -> st.SearchStrategy[Flow]:
    nodes = leaves
    if depth:
        nodes = st.one_of(leaves, leaves, leaves, _forks(depth))
    return st.lists(nodes, min_size=1, max_size=3).map(tuple)


def _forks(depth: int) -> st.SearchStrategy[Spec]:
    branches = st.lists(_flows(depth - 1), min_size=2, max_size=3).map(tuple)
    return st.builds(Fork, branches, st.booleans())


@define
class Build:
    """Makes the nodes; how long they take and how many run at once is drawn."""

    random: Random | None
    """None: each takes a second, and one runs after the other."""
    numbers: Iterator[int] = field(factory=count)
    asked: dict[str, int] = field(factory=dict)

    def flow(self, flow: Flow) -> list[Node]:
        named = [(f"n{next(self.numbers)}", spec) for spec in flow]
        following: list[str | Terminal] = [name for name, _ in named[1:]]
        return [
            self._node(name, spec, way)
            for (name, spec), way in zip(named, [*following, COMPLETE], strict=True)
        ]

    def _node(self, name: str, spec: Spec, way: str | Terminal) -> Node:
        match spec:
            case Work():
                then: dict[str, str | Terminal] = {"*": way}
                if spec.then is not None:
                    then["B"] = spec.then
                if spec.forgives:
                    then["FAILED"] = way
                rules = then if len(then) > 1 else None
                return Step(name, self._tasklet(name, spec), then=rules)
            case Choice():
                then = {"*": way, "B": spec.then or way}
                return Decision(name, self._decider(name, spec), then=then)
            case Parts():
                return PartitionedStep(
                    name,
                    self._worker(name, spec),
                    lambda ctx: [(f"{at}", {}) for at in range(len(spec.outcomes))],
                    then={"*": way} | ({"FAILED": way} if spec.forgives else {}),
                    max_workers=self.random.randint(1, 3) if self.random else 1,
                    on_failure="drain_siblings",
                )
            case Fork():
                then = {"*": way} | ({"FAILED": way} if spec.forgives else {})
                branches = [self.flow(one) for one in spec.branches]
                most = 1
                if self.random is not None:
                    most = self.random.randint(1, len(branches))
                return Split(
                    name,
                    branches,
                    then=then,
                    max_parallel=most,
                    on_failure="drain_siblings",
                )

    async def _sleep(self) -> None:
        times = [0.0, 0.5, 1.0, 2.0, 3.0]
        await trio.sleep(1.0 if self.random is None else self.random.choice(times))

    def _next(self, name: str, outcomes: tuple[str, ...]) -> str:
        at = self.asked[name] = self.asked.get(name, -1) + 1
        return outcomes[min(at, len(outcomes) - 1)]

    def _tasklet(self, name: str, spec: Work) -> Function:
        async def work(ctx: StepContext) -> Exit:
            await self._sleep()
            code = self._next(name, spec.outcomes)
            if code == "FAILS":
                raise ValueError(name)
            return Exit(code)

        return work

    def _worker(self, name: str, spec: Parts) -> Function:
        async def work(ctx: StepContext) -> Exit:
            assert ctx.partition is not None
            key = ctx.partition.key
            await self._sleep()
            code = self._next(f"{name}/{key}", spec.outcomes[int(key)])
            if code == "FAILS":
                raise ValueError(name)
            return Exit(code)

        return work

    def _decider(self, name: str, spec: Choice) -> Function:
        async def decide(ctx: DeciderContext) -> str:
            await self._sleep()
            return self._next(name, spec.answers)

        return decide


def _outcome(fork: Fork, random: Random | None, seed: int) -> object:
    store, build = Store(Clock()), Build(random)
    nodes = [Step("a", lambda ctx: None), *build.flow((fork,))]
    patient = job(*nodes)
    seen: list[object] = []

    async def main() -> LaunchReport:
        return await launch(store, patient)

    for _ in range(LAUNCHES):
        with seeded_scheduling(seed):
            report = trio.run(main, clock=trio.testing.MockClock(autojump_threshold=0))
        failure = report.failure and (report.failure.where, report.failure.code)
        steps = [(one.node, one.status, one.reused) for one in report.steps]
        parts = [(one.node, one.key, one.status) for one in report.partitions]
        seen.append((report.status, report.exit_code, failure, steps, parts))
        if report.status == "COMPLETED":
            break
    dump = store.dump()
    folded = [one.decision for one in dump.steps if one.decision is not None]
    made = [
        (one.execution_id, one.sequence, one.source, one.kind, one.outcome,
         str(one.target), one.reused)
        for one in (*folded, *dump.decisions)
    ]  # fmt: skip
    rows = [
        (one.execution_id, one.node, one.status, one.exit_code) for one in dump.steps
    ]
    assert store.settled()
    return seen, sorted(made, key=repr), sorted(rows, key=repr)


@pytest.fixture(autouse=True, scope="module")
def _quiet() -> Iterator[None]:
    logging.disable(logging.CRITICAL)
    yield
    logging.disable(logging.NOTSET)


@given(_forks(2), st.integers(0, 1 << 30))
@settings(max_examples=60, deadline=None)
def test_every_order_and_every_budget_comes_to_the_same(fork: Fork, seed: int) -> None:
    assert _outcome(fork, Random(seed), seed) == _outcome(fork, None, 0)
