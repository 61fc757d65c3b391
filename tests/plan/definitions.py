"""Invented definitions: components that do nothing, and random sound jobs."""

from collections.abc import Mapping, Sequence
from enum import Enum
from typing import Any

from hypothesis import strategies as st

from triolet.actors.plan.compile import compile_job
from triolet.actors.plan.definition import (
    COMPLETE,
    FAIL,
    STOP,
    Chunk,
    Decision,
    InFlight,
    Job,
    Node,
    Step,
    StepListener,
)
from triolet.storage.model.errors import DefinitionError
from triolet.storage.model.execution import Terminal


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


names = st.text("abc-é", min_size=1, max_size=6)
listeners = st.lists(
    st.builds(StepListener, st.just("audit"), before=st.just(work), revision=names),
    max_size=2,
)
chunks = st.builds(
    Chunk,
    st.just(Reader()),
    st.sampled_from([Writer(), ElsewhereWriter()]),
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
    rules: dict[str, dict[str, str | Terminal]] = {one: {"*": COMPLETE} for one in ids}
    for position, target in enumerate(ids[1:], 1):
        source = ids[draw(st.integers(0, position - 1))]
        rules[source][f"TO {position}"] = target
    for then in rules.values():
        then |= draw(
            st.dictionaries(
                st.sampled_from(["FAILED", "P*", "??", "Q?*"]),
                st.sampled_from([COMPLETE, FAIL, STOP]),
            )
        )
    return Job("drawn", [_node(draw, one, rules[one]) for one in ids])


def _node(draw: st.DrawFn, name: str, then: Mapping[str, str | Terminal]) -> Node:
    if draw(st.booleans()):
        version = draw(st.integers(1, 2**32 - 1))
        return Decision(
            name, work, then=then, revision=draw(names), input_version=version
        )
    return Step(
        name,
        draw(st.one_of(st.just(work), chunks)),
        then=then,
        start_limit=draw(st.none() | st.integers(1, 2**32 - 1)),
        allow_start_if_complete=draw(st.booleans()),
        listeners=draw(listeners),
    )
