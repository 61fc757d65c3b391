"""Bounds of whole numbers, checked before a store sees them: it has 64 bits."""

from .errors import InvalidValue


def check_whole(what: str, value: object, low: int, high: int) -> None:
    """Refuse what is no whole number from *low* to *high*, both included.

    Raises:
        InvalidValue: It is another number, or of another type; a bool is no number.
    """
    if type(value) is not int or not low <= value <= high:
        raise InvalidValue(what, f"must be a whole number from {low} to {high}")
