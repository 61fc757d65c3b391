"""Checks of what a definition binds to its nodes: functions, readers, writers.

Only the shape is checked, duck by duck; nothing of the user's is called.
"""

import inspect
from collections.abc import Iterable, Iterator
from enum import StrEnum

from ...storage.model.errors import with_article
from ...storage.model.names import NameKind
from .checks import LISTENERS_MAX, count_reasons, name_reasons
from .definition import (
    Chunk,
    Decision,
    FailurePolicy,
    InFlight,
    Job,
    JobListener,
    Node,
    OnStop,
    PartitionedStep,
    Split,
    Step,
    StepListener,
)
from .job_steps import ChildJob
from .naming import every_node
from .nesting import BRANCHES_MAX
from .plan import DeliveryMode

READER_METHODS = ("open", "read", "state", "close")
WRITER_METHODS = ("open", "write", "close")
WORKERS_MAX = 64
POOL_MAX = 1024
TIMEOUT_MAX = 1_000_000_000


def job_reasons(job: Job) -> Iterator[str]:
    """Say what is wrong with the listeners and settings of a job."""
    restartable: object = job.restartable
    if not isinstance(restartable, bool):
        yield f"restartable must be a bool, not {type(restartable).__name__}"
    yield from timeout_reasons(job.timeout)
    count = len(job.listeners)
    if count > LISTENERS_MAX:
        yield f"there are {count} listeners, at most {LISTENERS_MAX} are allowed"
    for listener in job.listeners:
        yield from _listener_reasons(listener, JobListener)
        revision = getattr(listener, "revision", "1")
        yield from name_reasons(revision, NameKind.REVISION, "listener revision")


def timeout_reasons(timeout: object) -> Iterator[str]:
    """Say what is wrong with a time limit, if anything."""
    if timeout is None:
        return
    if not isinstance(timeout, (int, float)) or isinstance(timeout, bool):
        yield f"timeout must be seconds or None, not {type(timeout).__name__}"
    elif not 0 < timeout <= TIMEOUT_MAX:
        most = f"{TIMEOUT_MAX:,}"
        yield f"timeout must be more than 0 and at most {most} seconds, not {timeout}"


def decision_reasons(decision: Decision) -> Iterator[str]:
    """Say what is wrong with the function of a decision."""
    yield from function_reasons(decision.decider, "decider")


def step_reasons(step: Step) -> Iterator[str]:
    """Say what is wrong with all that a step binds, and with its settings."""
    work: object = step.work
    if isinstance(work, Chunk):
        yield from _chunk_reasons(work)
        yield from _chunk_step_reasons(step)
    elif isinstance(work, Job):
        yield "the work is a job: use JobStep instead of Step"
    elif not isinstance(work, ChildJob):
        yield from function_reasons(work, "work")
        if step.write is not None:
            yield from function_reasons(step.write, "write function")
    for listener in step.listeners:
        yield from _listener_reasons(listener, StepListener)
    yield from _word_reasons(step.on_stop, OnStop, "on_stop")
    grace: object = step.grace
    if not isinstance(grace, (int, float)) or isinstance(grace, bool):
        yield f"grace must be seconds, not {type(grace).__name__}"
    elif not grace >= 0:
        yield f"grace must be at least 0 seconds, not {grace}"
    yield from timeout_reasons(step.timeout)


def split_reasons(split: Split) -> Iterator[str]:
    """Say what is wrong with the settings of a split and what its branches share."""
    yield from _word_reasons(split.on_failure, FailurePolicy, "on_failure")
    wrong = list(count_reasons(split.max_parallel, "budget max_parallel", BRANCHES_MAX))
    yield from wrong
    branches = len(split.branches)
    if not wrong and split.max_parallel > branches > 0:
        yield f"max_parallel is {split.max_parallel}, but there are {branches} branches"
    if not wrong:
        yield from _pool_reasons(split.pool_size, split.max_parallel)
    yield from _sharing_reasons(split)


def _pool_reasons(pool_size: int | None, budget: int) -> Iterator[str]:
    """Say what is wrong with the connections that a budget asks for."""
    if pool_size is None:
        return
    wrong = list(count_reasons(pool_size, "pool_size", POOL_MAX))
    yield from wrong
    if not wrong and pool_size <= budget:
        yield f"pool_size is {pool_size}, but must be at least the budget + 1, {budget + 1}"


def _sharing_reasons(split: Split) -> Iterator[str]:
    """Find readers and writers that would be used at two places at once."""
    owners: dict[int, tuple[int, str]] = {}
    for position, branch in enumerate(split.branches):
        for step in every_node(branch):
            for what, part in _parts_of(step):
                other, owner = owners.setdefault(id(part), (position, step.id))
                if other != position:
                    yield (
                        f"{owner!r} and {step.id!r} share a {what}, but are in "
                        "branches that run side by side: give each one its own"
                    )


def _parts_of(step: Node) -> Iterator[tuple[str, object]]:
    if not isinstance(step, Step):
        return
    if isinstance(step.work, Chunk):
        yield from (("reader", step.work.reader), ("writer", step.work.writer))
    elif isinstance(step.work, ChildJob) and step.work.compiled is not None:
        for part in step.work.compiled.components:
            yield "reader or writer", part


def partitioned_reasons(node: PartitionedStep) -> Iterator[str]:
    """Say what is wrong with the planner and the settings of a partitioned step."""
    yield from function_reasons(node.planner, "planner")
    yield from _word_reasons(node.on_failure, FailurePolicy, "on_failure")
    wrong = list(count_reasons(node.max_workers, "budget max_workers", WORKERS_MAX))
    yield from wrong or _pool_reasons(node.pool_size, node.max_workers)
    yield from timeout_reasons(node.timeout)
    worker = node.worker
    if node.factory is not None:
        yield from function_reasons(node.factory, "factory")
    elif isinstance(worker, Step) and isinstance(worker.work, Chunk):
        yield (
            "a chunk as worker needs factory=, a function that makes the chunk of each "
            "partition: all of them would share its reader and writer"
        )
    if isinstance(worker, Step) and worker.allow_start_if_complete is True:
        yield (
            "allow_start_if_complete= of the worker has no effect, a partition that "
            "completed is not repeated: give it to the partitioned step"
        )


def worker_reasons(step: Step) -> Iterator[str]:
    """Say what a worker may not have."""
    for name, given in (("then", step.then), ("visit_limit", step.visit_limit)):
        if given is not None:
            yield (
                f"{name}= has no effect inside of a partitioned step: give it to that "
                "node"
            )


def delivery_of(writer: object) -> DeliveryMode | None:
    """Find how a writer delivers; None when it does not say so in our words."""
    value = getattr(getattr(writer, "delivery", None), "value", None)
    return DeliveryMode(value) if value in list(DeliveryMode) else None


def _chunk_step_reasons(step: Step) -> Iterator[str]:
    if step.write is not None:
        yield "write= is for tasklets: a chunk writes with its writer"
    if step.revision != "1":
        yield (
            "revision= is for tasklets: a chunk has reader_revision, "
            "processor_revision, writer_revision and checkpoint_revision"
        )
    if step.on_stop is not OnStop.CANCEL:
        yield "on_stop= is for tasklets: a chunk has in_flight="


def _chunk_reasons(chunk: Chunk) -> Iterator[str]:
    yield from _component_reasons(chunk.reader, READER_METHODS, "reader")
    yield from _component_reasons(chunk.writer, WRITER_METHODS, "writer")
    if chunk.processor is not None:
        yield from function_reasons(chunk.processor, "processor")
    yield from _word_reasons(chunk.in_flight, InFlight, "in_flight")
    delivery = delivery_of(chunk.writer)
    if delivery is None:
        said = getattr(chunk.writer, "delivery", None)
        kind = "nothing" if said is None else type(said).__name__
        text = f"the text {said!r}" if isinstance(said, str) else kind
        words = "Delivery.ATOMIC or Delivery.AT_LEAST_ONCE"
        yield f"the writer's delivery must be {words}, not {text}"
    if delivery is DeliveryMode.ATOMIC:
        yield from _atomic_reasons(chunk.writer)


def _atomic_reasons(writer: object) -> Iterator[str]:
    for name in WRITER_METHODS:
        if inspect.iscoroutinefunction(getattr(writer, name, None)):
            yield (
                f"the writer is atomic, so its {name} runs inside the store's "
                "transaction and must not be async"
            )


def _component_reasons(
    component: object, methods: Iterable[str], what: str
) -> Iterator[str]:
    if isinstance(component, type):
        yield f"the {what} is the class {component.__name__}: give an instance of it"
        return
    missing = [one for one in methods if not callable(getattr(component, one, None))]
    if missing:
        kind = type(component).__name__
        yield f"the {what} of type {kind} has no method {', '.join(missing)}"


def function_reasons(function: object, what: str) -> Iterator[str]:
    """Say what is wrong with a function of the user's."""
    if inspect.iscoroutine(function):
        name = function.__name__
        yield f"the {what} is a coroutine: give {name} itself, do not call it"
    elif not callable(function):
        yield f"the {what} must be a function, not {type(function).__name__}"
    elif inspect.isasyncgenfunction(function) or inspect.isgeneratorfunction(function):
        yield f"the {what} is a generator function, which would never run"


def _listener_reasons(
    listener: object, kind: type[StepListener] | type[JobListener]
) -> Iterator[str]:
    if not isinstance(listener, kind):
        given = type(listener).__name__
        yield f"a listener must be {with_article(kind.__name__)}, not {given}"
        return
    yield from name_reasons(listener.name, NameKind.LISTENER)
    calls = {"before": listener.before, "after": listener.after}
    for when, function in calls.items():
        if function is not None:
            what = f"{when} of listener {listener.name!r}"
            yield from function_reasons(function, what)
    if listener.before is None and listener.after is None:
        yield f"the listener {listener.name!r} has neither before nor after"


def _word_reasons(word: object, words: type[StrEnum], what: str) -> Iterator[str]:
    if not isinstance(word, words):
        choices = " or ".join(repr(one.value) for one in words)
        yield f"{what} must be {choices}"
