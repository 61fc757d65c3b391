"""Log records that know their execution and step, by context variables."""

import logging
from contextvars import ContextVar

execution_id: ContextVar[int | None] = ContextVar("triolet_execution", default=None)
"""The execution that the running task works for."""
step_id: ContextVar[int | None] = ContextVar("triolet_step", default=None)
"""The step execution that the running task works for."""


class Correlated(logging.Filter):
    """Adds ``execution_id`` and ``step_id`` to every record that passes.

    Put it on a handler, to see the ids of whatever is logged inside a step, also by
    libraries that know nothing of jobs.
    """

    def filter(self, record: logging.LogRecord) -> bool:
        """Add the ids; nothing is filtered out."""
        record.execution_id = execution_id.get()
        record.step_id = step_id.get()
        return True
