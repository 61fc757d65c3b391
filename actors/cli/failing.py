"""From an exception to one sentence and an exit code; tracebacks only on demand."""

import traceback
from collections.abc import Callable

from ...storage.model.errors import DefinitionError, TrioletError
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
    except (KeyboardInterrupt, BaseExceptionGroup) as exc:
        if debug:
            traceback.print_exc()
        if isinstance(exc, KeyboardInterrupt) or exc.subgroup(KeyboardInterrupt):
            complain("interrupted; the same command continues from the last commit")
            return SECOND_SIGNAL
        complain(f"internal error, please report it: {exc}")
        return INTERNAL
    except Exception as exc:
        if debug:
            traceback.print_exc()
        complain(f"internal error, please report it: {type(exc).__name__}: {exc}")
        return INTERNAL


def _explain(exc: TrioletError) -> None:
    if not isinstance(exc, DefinitionError) or len(exc.problems) < 2:
        complain(str(exc))
        return
    mistakes = (str(problem) for problem in exc.problems)
    complain(f"job {exc.job!r} has {len(exc.problems)} mistakes:", *mistakes)
