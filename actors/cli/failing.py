"""From an exception to one sentence and an exit code; tracebacks only on demand."""

import traceback
from collections.abc import Callable

from ...storage.model.errors import DefinitionError, TrioletError
from .exit_codes import INTERNAL, exit_of
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
