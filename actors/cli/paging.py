"""Pages of a list, newest first: what may be asked for, and how one is printed."""

from collections.abc import Iterator, Sequence
from enum import StrEnum
from typing import TypeVar

from ...storage.model.errors import InvalidValue
from ...storage.model.execution import COUNT_MAX
from .formats import table

S = TypeVar("S", bound=StrEnum)

PAGE_MAX = 500


def check_page(limit: int, before: int | None, what: str) -> None:
    """Refuse a page that cannot be.

    Raises:
        InvalidValue: The limit is out of bounds, or *before* is not the number of
            *what* is listed.
    """
    if not 1 <= limit <= PAGE_MAX:
        raise InvalidValue("--limit", f"must be 1 to {PAGE_MAX}")
    if before is not None and not 0 <= before <= COUNT_MAX:
        raise InvalidValue("--before", f"must be the number of {what}")


def status_of(kind: type[S], word: str | None) -> S | None:
    """Read the word given with ``--status``.

    Raises:
        InvalidValue: It is no status of this kind.
    """
    if word is None:
        return None
    try:
        return kind(word.upper())
    except ValueError:
        known = ", ".join(one.value for one in kind)
        raise InvalidValue("--status", f"must be one of {known}") from None


def page_lines(
    head: list[str], rows: Sequence[list[str]], more: int | None, nothing: str
) -> Iterator[str]:
    """Print a page; *more* is the number to go on before, if there is more."""
    if not rows:
        yield nothing
        return
    yield from table([head, *rows])
    if more is not None:
        yield f"there are more: add --before {more}"
