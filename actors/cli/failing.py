"""From a command to its output and exit code; tracebacks only on demand.

An answer is printed for people or as JSON; an error becomes one sentence, or JSON too.
"""

import traceback
from collections.abc import Callable

from attrs import frozen

from ...storage.model.errors import DefinitionError, TrioletError, error
from ..job.places import place_of
from .answers import Answer
from .exit_codes import INTERNAL, OUTPUT_FAILED, SECOND_SIGNAL, exit_of
from .interrupts import answering
from .output import OutputFailed, complain, emit


@error
class UsageInvalid(TrioletError):
    """The words of the command line do not fit together; nothing was done."""

    code = "usage_invalid"
    reason: str

    def __str__(self) -> str:
        """Say in one sentence what is wrong, where, and how to mend it."""
        return self.reason


@frozen(kw_only=True)
class Form:
    """How a command shows what it came to."""

    command: str
    json: bool = False
    debug: bool = False


def guarded(command: Callable[[], Answer], form: Form) -> int:
    """Carry out a command and show its answer, or its error; give the exit code."""
    try:
        return _tell(command(), form)
    except OutputFailed as exc:
        complain(str(exc))
        return OUTPUT_FAILED
    except TrioletError as exc:
        code, sentence = exit_of(exc), str(exc)
        raised: BaseException = exc
    except BaseException as exc:
        code, sentence = _unforeseen(exc)
        raised = exc
    if form.debug:
        traceback.print_exception(raised)
    return told(raised, code, sentence, form)


def _tell(answer: Answer, form: Form) -> int:
    if form.json:
        from .documents import answer_document

        answering()
        emit([answer_document(form.command, answer)])
    else:
        emit(answer.lines)
        if answer.warning is not None:
            complain(answer.warning)
    return answer.code


def told(exc: BaseException, code: int, sentence: str, form: Form) -> int:
    """Show an error; give its exit code."""
    if form.json:
        from .documents import error_document

        answering()
        try:
            emit([error_document(form.command, code, exc, sentence)])
        except OutputFailed as failed:
            complain(str(failed))
    elif isinstance(exc, DefinitionError) and len(exc.problems) > 1:
        mistakes = (str(problem) for problem in exc.problems)
        complain(f"job {exc.job!r} has {len(exc.problems)} mistakes:", *mistakes)
    else:
        complain(sentence)
    return code


def _unforeseen(exc: BaseException) -> tuple[int, str]:
    while isinstance(exc, BaseExceptionGroup):
        interrupted = exc.subgroup(KeyboardInterrupt)
        exc = (interrupted or exc).exceptions[0]
    text = f"{type(exc).__name__}: {exc}"
    if isinstance(exc, KeyboardInterrupt):
        again = "interrupted; what was committed stays"
        return SECOND_SIGNAL, again
    if isinstance(exc, Exception):
        return INTERNAL, f"internal error, please report it: {text}"
    place = place_of(exc)
    where = "" if place is None else f" ({place})"
    return INTERNAL, (
        f"user code raised what is no Exception, which ends the process: {text}{where}; "
        "raise an Exception instead"
    )
