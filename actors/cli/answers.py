"""What a command answers: a value, the lines that show it to people, an exit code."""

from collections.abc import Iterable

from attrs import frozen

from .exit_codes import DONE
from .output import emit


@frozen
class Answer:
    """What a command came to."""

    value: object
    """Whatever is shown, as the store gave it."""
    lines: Iterable[str]
    code: int = DONE


def tell(answer: Answer) -> int:
    """Print an answer; give its exit code.

    Raises:
        OutputFailed: It could not be written.
    """
    emit(answer.lines)
    return answer.code
