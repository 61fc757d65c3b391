"""How the constructors of a definition take in lists and dicts of any kind."""

from collections.abc import Iterable, Mapping
from typing import TypeVar

from ...storage.model.errors import InvalidValue
from ...storage.model.execution import End

T = TypeVar("T")


def list_of(values: Iterable[T], what: str) -> tuple[T, ...]:
    """Copy a list; a text is none.

    Raises:
        InvalidValue: With *what* as its subject.
    """
    given: object = values
    if isinstance(given, str) or not isinstance(given, Iterable):
        raise InvalidValue(what, f"must be a list, not {type(given).__name__}")
    return tuple(values)


def targets(then: Mapping[str, str | End]) -> dict[str, str | End]:
    """Copy the rules of a node.

    Raises:
        InvalidValue: They are no dict.
    """
    given: object = then
    if not isinstance(given, Mapping):
        raise InvalidValue("then", f"must be a dict, not {type(given).__name__}")
    return dict(then)


def targets_if_any(
    then: Mapping[str, str | End] | None,
) -> dict[str, str | End] | None:
    """Copy the rules of a node that may have none of its own."""
    return None if then is None else targets(then)
