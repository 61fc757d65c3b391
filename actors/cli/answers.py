"""What a command answers: a value, the lines that show it to people, an exit code."""

from collections.abc import Iterable

from attrs import frozen

from .exit_codes import DONE


@frozen
class Answer:
    """What a command came to."""

    value: object
    """Whatever is shown, as the store gave it."""
    lines: Iterable[str]
    code: int = DONE
    warning: str | None = None
    """A sentence for standard error, such as why a job failed."""
    more: int | None = None
    """Where the next page begins, if there is one."""
