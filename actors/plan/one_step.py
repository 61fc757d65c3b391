"""What users write for a job of one step, whose definition says less than a flow's."""

from collections.abc import Iterable, Iterator, Mapping

from attrs import field, frozen

from ...storage.model.errors import Problem
from .converters import list_of
from .definition import Chunk, Job, Node, Step
from .job_steps import ChildJob


def _only(step: Step | Iterable[Node]) -> tuple[Node, ...]:
    # What is neither is recorded as a step; the compiler says what is wrong with it.
    return list_of(step if isinstance(step, Iterable) else [step], "a job of one step")


@frozen
class TaskletJob(Job):
    """A job of one tasklet.

    It ends as its step does, whatever the exit code: FAILED fails it, STOPPED stops it,
    any other one completes it. It is launched like any ``Job``, with two differences:

    * Its definition, in manifest format 1, holds the names of job and step and the
      tasklet's revision, but no listeners, start limit or ``allow_start_if_complete``:
      these may change while an instance is unfinished.
    * The step's row comes before the job listeners. When a ``before`` of theirs fails,
      the step fails with the job, and no ``after`` is called.

    Args:
        name: Names the job in the store; at most 128 bytes.
        steps: The one ``Step``, without ``then``, ``name`` and ``visit_limit``.
        revision: As for a ``Job``, like all the others.
        parameters: As for a ``Job``.
        listeners: As for a ``Job``.
        restartable: As for a ``Job``.
        timeout: As for a ``Job``.
    """

    steps: tuple[Node, ...] = field(converter=_only)


@frozen
class ChunkJob(Job):
    """A job of one chunk step; see `TaskletJob`.

    Its definition holds the chunk's size, revisions, state schemas, delivery and
    ``in_flight``.

    Args:
        name: Names the job in the store; at most 128 bytes.
        steps: The one ``Step`` with a ``Chunk``; see `TaskletJob`.
        revision: As for a ``Job``, like all the others.
        parameters: As for a ``Job``.
        listeners: As for a ``Job``.
        restartable: As for a ``Job``.
        timeout: As for a ``Job``.
    """

    steps: tuple[Node, ...] = field(converter=_only)


def has_one_step(job: Job) -> bool:
    """Tell whether a definition is one of manifest format 1."""
    return isinstance(job, TaskletJob | ChunkJob)


def one_step_problems(job: Job, nodes: Mapping[str, Node]) -> Iterator[Problem]:
    """Find what a job of one step may not have; other jobs are not looked at."""
    if not has_one_step(job):
        return
    kind = type(job).__name__
    if len(job.steps) != 1:
        yield Problem(
            None, f"the {kind} must have exactly 1 step, not {len(job.steps)}"
        )
    for key, node in nodes.items():
        if not isinstance(node, Step):
            reason = f"the node of the {kind} must be a Step, not {type(node).__name__}"
            yield Problem(key, reason)
            continue
        if isinstance(node.work, ChildJob):
            yield Problem(key, f"the {kind} may not run another job: use a Job")
        elif isinstance(node.work, Chunk) != isinstance(job, ChunkJob):
            other = "TaskletJob" if isinstance(job, ChunkJob) else "ChunkJob"
            yield Problem(key, f"its work is not for the {kind}: use {other}")
        if node.then is not None:
            yield Problem(key, f"then= has no effect in the {kind}, which ends with it")
        if node.visit_limit is not None:
            reason = f"visit_limit= has no effect in the {kind}, which comes to it once"
            yield Problem(key, reason)
        if node.name not in (None, node.id):
            yield Problem(key, f"name= has no effect in the {kind}: its id is its name")
