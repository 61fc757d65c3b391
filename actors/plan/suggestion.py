"""Guesses at what a misspelt word was meant to be."""

from collections.abc import Iterable
from difflib import get_close_matches


def nearest(word: str, known: Iterable[str]) -> str | None:
    """Find the one of *known* that is most like *word*, if any is like it."""
    return next(iter(get_close_matches(word, tuple(known), n=1)), None)


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """Give the end of a sentence that proposes the nearest of *known*, or nothing."""
    found = nearest(word, known)
    return "" if found is None else f": did you mean {found!r}?"
