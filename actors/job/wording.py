"""How a failure is told to people, in reports, errors and listings."""

from ...storage.model.execution import Failure

_RAISED_BY = {
    "tasklet_failed": "the tasklet",
    "write_failed": "the write function",
    "decider_failed": "the decider",
    "parameters_failed": "the function of its parameters",
    "factory_failed": "the factory",
    "before_step_listener_failed": "the listener",
    "after_step_listener_failed": "the listener",
    "reader_open_failed": "the reader as it was opened",
    "reader_failed": "the reader",
    "reader_close_failed": "the reader as it was closed",
    "processor_failed": "the processor",
    "writer_open_failed": "the writer as it was opened",
    "writer_failed": "the writer",
    "writer_close_failed": "the writer as it was closed",
}
_NOT_A_STEP = {
    "before_job_listener_failed": "job listener",
    "after_job_listener_failed": "job listener",
    "planner_failed": "the planner of",
}
_HAPPENED = {"owner_died": "the process that ran it has died"}


def failure_text(failure: Failure) -> str:
    """Say in one sentence where something failed, why, and in which line of whose code.

    Codes stand in brackets only.
    """
    place = f" at {failure.place}" if failure.place else ""
    return f"{failure_summary(failure)} [{failure.category}]{place}"


def failure_summary(failure: Failure) -> str:
    """Say where something failed and why, and no more."""
    if not failure.where:
        return _what(failure)
    # A bare name is that of a step.
    role = _NOT_A_STEP.get(failure.code)
    where = failure.where if role is None else f"{role} {failure.where!r}"
    return f"{where}: {_what(failure)}"


def _what(failure: Failure) -> str:
    if failure.message:
        return f"{failure.type}: {failure.message}" if failure.type else failure.message
    if failure.type:
        who = _RAISED_BY.get(failure.code)
        return failure.type if who is None else f"{failure.type} raised by {who}"
    return _HAPPENED.get(failure.code, failure.code.replace("_", " "))
