"""From an exception to one sentence and an exit code; tracebacks only on demand."""

import os
import sys
import traceback
from collections.abc import Callable

from ...storage.model.errors import DefinitionError, TrioletError
from .exit_codes import BY_ERROR, INTERNAL, OUTPUT_FAILED


def complain(sentence: str) -> None:
    """Say something on standard error."""
    print(f"triolet: {sentence}", file=sys.stderr)


def guarded(command: Callable[[], int], debug: bool) -> int:
    """Carry out a command; an error becomes a sentence and an exit code."""
    try:
        code = command()
        sys.stdout.flush()
    except BrokenPipeError:
        # Nobody reads any more; the interpreter must not stumble over it at its end.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return OUTPUT_FAILED
    except TrioletError as exc:
        if debug:
            traceback.print_exc()
        _explain(exc)
        return BY_ERROR.get(exc.code, INTERNAL)
    except Exception as exc:
        if debug:
            traceback.print_exc()
        complain(f"internal error, please report it: {type(exc).__name__}: {exc}")
        return INTERNAL
    return code


def _explain(exc: TrioletError) -> None:
    if not isinstance(exc, DefinitionError) or len(exc.problems) < 2:
        complain(str(exc))
        return
    complain(f"job {exc.job!r} has {len(exc.problems)} mistakes:")
    for problem in exc.problems:
        print(f"  - {problem}", file=sys.stderr)
