"""Keeping the values of secret parameters out of every text that Triolet shows."""

import json
from collections.abc import Callable, Iterable
from urllib.parse import quote, quote_plus

SECRET_MASK = "***"

_WRITERS: tuple[Callable[[str], str], ...] = (
    lambda text: repr(text)[1:-1],
    lambda text: repr('"' + text)[2:-1],  # with its own apostrophes escaped
    lambda text: ascii(text)[1:-1],
    lambda text: repr(text.encode(errors="surrogatepass"))[2:-1],
    lambda text: json.dumps(text)[1:-1],
    lambda text: json.dumps(text, ensure_ascii=False)[1:-1],
)
_QUOTERS: tuple[Callable[[bytes], str], ...] = (
    quote,
    lambda raw: quote(raw, safe=""),
    quote_plus,
)


def spellings(secrets: Iterable[str]) -> tuple[str, ...]:
    """Give all ways in which error messages write these texts.

    A message rarely holds a value as it is: a KeyError has its repr, a driver quotes it
    as JSON, an HTTP client as a part of a URL; a group of exceptions escapes that again.

    Returns:
        The texts, longest first, since one may be the beginning of another.
    """
    found = {text for text in secrets if text}
    for text in tuple(found):
        raw = text.encode(errors="surrogatepass")
        found.update(quoter(raw) for quoter in _QUOTERS)
        once = {writer(text) for writer in _WRITERS}
        found |= once
        found.update(writer(one) for one in once for writer in _WRITERS)
    return tuple(sorted(found, key=lambda text: (-len(text), text)))


def masked(text: str, spelled: Iterable[str]) -> str:
    """Replace each of these spellings in a text."""
    for one in spelled:
        text = text.replace(one, SECRET_MASK)
    return text
