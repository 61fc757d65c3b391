"""From an exception to one sentence and an exit code; tracebacks only on demand."""

import traceback
from collections.abc import Callable

from ...storage.model.errors import DefinitionError, TrioletError
from ..job.places import place_of
from .exit_codes import INTERNAL, SECOND_SIGNAL, exit_of
from .output import complain


def guarded(command: Callable[[], int], debug: bool) -> int:
    """Carry out a command; an error becomes a sentence and an exit code."""
    try:
        return command()
    except TrioletError as exc:
        if debug:
            traceback.print_exc()
        _explain(exc)
        return exit_of(exc)
    except BaseException as exc:
        if debug:
            traceback.print_exc()
        return _unforeseen(exc)


def _unforeseen(exc: BaseException) -> int:
    while isinstance(exc, BaseExceptionGroup):
        interrupted = exc.subgroup(KeyboardInterrupt)
        exc = (interrupted or exc).exceptions[0]
    text = f"{type(exc).__name__}: {exc}"
    if isinstance(exc, KeyboardInterrupt):
        complain("interrupted; the same command continues from the last commit")
        return SECOND_SIGNAL
    if isinstance(exc, Exception):
        complain(f"internal error, please report it: {text}")
    else:
        place = place_of(exc)
        where = "" if place is None else f" ({place})"
        complain(
            f"user code raised what is no Exception, which ends the process: {text}"
            f"{where}; raise an Exception instead"
        )
    return INTERNAL


def _explain(exc: TrioletError) -> None:
    if not isinstance(exc, DefinitionError) or len(exc.problems) < 2:
        complain(str(exc))
        return
    mistakes = (str(problem) for problem in exc.problems)
    complain(f"job {exc.job!r} has {len(exc.problems)} mistakes:", *mistakes)
