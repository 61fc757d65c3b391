"""Since when something is under way that earlier attempts died over.

An attempt that was cut off by the death of its owner has not ended in any sense of the
job's: the next one goes on with it, and so does the time that is left for it.
"""

from collections.abc import Iterable, Mapping
from itertools import takewhile

from attrs import evolve

from ..model.execution import Failure, StepExecution
from ..model.status import FailureCategory
from .opening import Snapshot


def is_cut_off(failure: Failure | None) -> bool:
    """Tell whether what has this failure was closed for an owner that had died."""
    return failure is not None and failure.category is FailureCategory.STALE_RECOVERED


def cut_off(attempts: Iterable[tuple[int, int, Failure | None]]) -> dict[int, int]:
    """Find the attempts at an instance that died, back from the latest one.

    Args:
        attempts: (execution id, when it was made, failure), newest first.

    Returns:
        When they were made, by id; empty when the latest one ended by itself.
    """
    dead = takewhile(lambda attempt: is_cut_off(attempt[2]), attempts)
    return {execution_id: made_at for execution_id, made_at, _ in dead}


def underway(
    snapshot: Snapshot, attempts: Mapping[int, int], steps: Iterable[StepExecution]
) -> Snapshot:
    """Tell in a snapshot since when the instance and its steps are under way.

    Args:
        snapshot: Of the instance.
        attempts: What `cut_off` found.
        steps: Those of these attempts, oldest first, named as in the snapshot.
    """
    first: dict[tuple[str, int], int] = {}
    for step in steps:
        key = step.node, step.visit
        if step.execution_id in attempts and is_cut_off(step.failure):
            first.setdefault(key, step.created_at)
        else:
            first.pop(key, None)
    return evolve(
        snapshot,
        since=min(attempts.values(), default=None),
        steps_since=tuple((*key, first[key]) for key in sorted(first)),
    )
