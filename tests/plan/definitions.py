"""Invented definitions: components that do nothing, and random sound jobs."""

from collections.abc import Mapping, Sequence
from enum import Enum
from typing import Any, TypeAlias

from attrs import evolve
from hypothesis import strategies as st

from triolet.actors.plan.compile import compile_job
from triolet.actors.plan.definition import (
    COMPLETE,
    FAIL,
    STOP,
    Chunk,
    Decision,
    FailurePolicy,
    InFlight,
    Job,
    Node,
    PartitionedStep,
    Split,
    Step,
    StepListener,
    Stop,
)
from triolet.actors.plan.job_steps import JobStep
from triolet.storage.model.errors import DefinitionError
from triolet.storage.model.execution import End, Terminal


def work(ctx: object) -> None:
    """Do nothing, like every function here: compiling calls nobody."""


class Delivery(Enum):
    """The writer protocol's enum as any library might spell it."""

    ATOMIC = "atomic_same_resource"
    AT_LEAST_ONCE = "at_least_once"


class Reader:
    """Has the shape of a reader."""

    def open(self, state: object) -> None: ...

    def read(self, n: int) -> list[object]:
        return []

    def state(self) -> dict[str, object]:
        return {}

    def close(self) -> None: ...


class Writer:
    """Has the shape of a writer."""

    delivery: Delivery = Delivery.ATOMIC

    def open(self, cursor: object) -> None: ...

    def write(
        self, cursor: object, rows: Sequence[object], chunk_key: object
    ) -> Any: ...

    def close(self) -> None: ...


class ElsewhereWriter(Writer):
    """Writes to another resource, asynchronously."""

    delivery = Delivery.AT_LEAST_ONCE

    async def write(
        self, cursor: object, rows: Sequence[object], chunk_key: object
    ) -> None: ...


class AsyncAtomicWriter(Writer):
    """Breaks the rule that what runs inside the transaction is not async."""

    async def write(
        self, cursor: object, rows: Sequence[object], chunk_key: object
    ) -> None: ...


def decision(name: str, **then: str | Terminal) -> Decision:
    return Decision(name, work, then=then)


def problems_of(job: Job) -> list[str]:
    """Compile a wrong job and give what it was reproached with."""
    try:
        compile_job(job)
    except DefinitionError as exc:
        return [str(problem) for problem in exc.problems]
    return []


CHILD = Job("child of a drawn job", [Step("a", work)])
names = st.text("abc-é", min_size=1, max_size=6)
listeners = st.lists(
    st.builds(StepListener, st.just("audit"), before=st.just(work), revision=names),
    max_size=2,
)
chunks = st.builds(
    Chunk,
    st.builds(Reader),
    st.one_of(st.builds(Writer), st.builds(ElsewhereWriter)),
    size=st.integers(1, 2**32 - 1),
    in_flight=st.sampled_from(list(InFlight)),
    reader_revision=names,
    writer_revision=names,
    processor_revision=names,
    checkpoint_revision=names,
)


@st.composite
def jobs(draw: st.DrawFn) -> Job:
    """Draw a job in which every node says where it leads, and all are reached."""
    ids = draw(st.lists(names, min_size=1, max_size=6, unique=True))
    rules = _rules(draw, ids)
    nodes: list[Node] = [_plain(draw, ids[0], rules[ids[0]])]
    nodes += [_node(draw, one, rules[one], 4) for one in ids[1:]]
    if draw(st.booleans()):
        # Now there may be ways back, too.
        limit = draw(st.integers(1, 100_000))
        nodes = [evolve(node, visit_limit=limit) for node in nodes]
        last = nodes[-1]
        back = {**(last.then or {}), "AGAIN": draw(st.sampled_from(ids))}
        nodes[-1] = evolve(last, then=back)
    return Job("drawn", nodes)


def _rules(draw: st.DrawFn, ids: Sequence[str]) -> dict[str, dict[str, str | End]]:
    rules: dict[str, dict[str, str | End]] = {one: {"*": COMPLETE} for one in ids}
    for position, target in enumerate(ids[1:], 1):
        source = ids[draw(st.integers(0, position - 1))]
        rules[source][f"TO {position}"] = target
    for position, then in enumerate(rules.values(), 1):
        ends = [COMPLETE, FAIL, STOP, *map(Stop, ids[position:])]
        then |= draw(
            st.dictionaries(
                st.sampled_from(["FAILED", "P*", "??", "Q?*"]),
                st.sampled_from(ends),
            )
        )
    return rules


Then: TypeAlias = Mapping[str, str | End]
limits = st.none() | st.integers(1, 2**32 - 1)
policies = st.sampled_from(FailurePolicy)


def _node(draw: st.DrawFn, name: str, then: Then, depth: int) -> Node:
    kinds = ["plain", "plain", "plain", "partitioned", *["split"] * (depth > 0)]
    match draw(st.sampled_from(kinds)):
        case "split":
            count = draw(st.integers(2, 3))
            branches = [_branch(draw, f"{name}.{at}", depth - 1) for at in range(count)]
            if any(one.then is not None for branch in branches for one in branch):
                # Only a split of lines may resume elsewhere: others go there at once.
                then = {code: _at_once(way) for code, way in then.items()}
            return Split(name, branches, then=then, on_failure=draw(policies))
        case "partitioned":
            return PartitionedStep(
                name,
                draw(st.one_of(_steps(f"{name}.w"), st.just(work))),
                work,
                draw(st.none() | st.integers(1, 1024)),
                then=then,
                on_failure=draw(policies),
                start_limit=draw(limits),
                allow_start_if_complete=draw(st.booleans()),
                planner_revision=draw(names),
                factory=work,
            )
    return _plain(draw, name, then)


def _at_once(way: str | End) -> str | End:
    return way.resume_at if isinstance(way, Stop) else way


def _plain(draw: st.DrawFn, name: str, then: Then) -> Step | Decision:
    if draw(st.booleans()):
        version = draw(st.integers(1, 2**32 - 1))
        return Decision(
            name, work, then=then, revision=draw(names), input_version=version
        )
    if draw(st.booleans()):
        exits = draw(st.dictionaries(st.sampled_from(["COMPLETED", "FAILED"]), names))
        return JobStep(name, CHILD, then=then, exits=exits, revision=draw(names))
    allow = draw(st.booleans())
    return evolve(draw(_steps(name)), then=then, allow_start_if_complete=allow)


def _steps(name: str) -> st.SearchStrategy[Step]:
    return st.builds(
        Step,
        st.just(name),
        st.one_of(st.just(work), chunks),
        start_limit=limits,
        listeners=listeners,
        restartable=st.booleans(),
    )


def _branch(draw: st.DrawFn, prefix: str, depth: int) -> list[Node]:
    ids = [f"{prefix}.{at}" for at in range(draw(st.integers(1, 3)))]
    if draw(st.booleans()):
        return [draw(_steps(one)) for one in ids]
    rules = _rules(draw, ids)
    return [_node(draw, one, rules[one], depth) for one in ids]
