"""What a process leaves running although its runtime is closed: tasks and threads."""

import threading
from collections.abc import Iterator

import trio

PATIENCE_SECS = 1.0
"""In which a thread that is about to end does so."""


class LeftBehind(Exception):
    """The runtime is closed, and something still runs."""


def tasks() -> set[trio.lowlevel.Task]:
    """List the tasks of this trio run."""
    root = trio.lowlevel.current_root_task()
    return set() if root is None else set(_below(root))


def _below(task: trio.lowlevel.Task) -> Iterator[trio.lowlevel.Task]:
    yield task
    for nursery in task.child_nurseries:
        for child in nursery.child_tasks:
            yield from _below(child)


def threads() -> set[threading.Thread]:
    """List the threads that keep a process from ending; trio's idle ones do not."""
    return {thread for thread in threading.enumerate() if not thread.daemon}


def refuse_tasks(before: set[trio.lowlevel.Task]) -> None:
    """Demand that no task runs but those *before*.

    Raises:
        LeftBehind: Some do.
    """
    names = sorted(task.name for task in tasks() - before)
    if names:
        raise LeftBehind(f"tasks are left: {', '.join(names)}")


def refuse_threads(before: set[threading.Thread]) -> None:
    """Demand that no thread runs but those *before*.

    Raises:
        LeftBehind: Some do.
    """
    for thread in threads() - before:
        thread.join(PATIENCE_SECS)
    names = sorted(thread.name for thread in threads() - before)
    if names:
        raise LeftBehind(f"threads are left: {', '.join(names)}")
