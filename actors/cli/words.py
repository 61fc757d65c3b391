"""The options that many commands have."""

import os
import re
from collections.abc import Sequence
from typing import Annotated

from cyclopts import Parameter, Token

DEFAULT_STORE = "sqlite:///triolet.db"

_WHOLE = re.compile("[+-]?[0-9]+", re.ASCII)


def _whole(kind: object, tokens: Sequence[Token]) -> int:
    """Read a number strictly: an operator who mistypes one must not hit another."""
    (token,) = tokens
    if not _WHOLE.fullmatch(token.value):
        raise ValueError(f"{token.value!r} is not a whole number")
    return int(token.value)


def _filled(kind: object, value: object) -> None:
    """Refuse an empty text, as an unset variable of a shell leaves it."""
    if value == "":
        raise ValueError("it must not be empty")


WHOLE = Parameter(converter=_whole)
FILLED = Parameter(validator=_filled)
Number = Annotated[int, WHOLE]

Store = Annotated[
    str | None,
    Parameter(
        help="sqlite:///FILE, sqlite:////ABSOLUTE/FILE, postgresql://USER@HOST/DB "
        "or memory: (default: $TRIOLET_STORE, else sqlite:///triolet.db)"
    ),
]
Debug = Annotated[
    bool, Parameter(negative="", help="Show the traceback of an error, too.")
]
DryRun = Annotated[bool, Parameter(negative="", help="Only tell what would happen.")]
Json = Annotated[
    bool,
    Parameter(negative="", help="Print one JSON object on standard output."),
]
Reason = Annotated[str | None, FILLED, Parameter(help="Why; it is kept on record.")]
Actor = Annotated[
    str | None,
    FILLED,
    Parameter(help="Who asks (default: the user of the operating system)."),
]
OperationId = Annotated[
    str | None,
    FILLED,
    Parameter(help="What is sent twice under one id is done once (default: random)."),
]
Yes = Annotated[bool, Parameter(negative="", help="Do not ask for confirmation.")]


def url_of(store: str | None) -> str:
    """Give the store's URL: the option, else the environment, else the default."""
    return store or os.environ.get("TRIOLET_STORE") or DEFAULT_STORE
