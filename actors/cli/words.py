"""The options that many commands have."""

import os
from typing import Annotated

from cyclopts import Parameter

DEFAULT_STORE = "sqlite:///triolet.db"

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
Reason = Annotated[str | None, Parameter(help="Why; it is kept on record.")]
Actor = Annotated[
    str | None, Parameter(help="Who asks (default: the user of the operating system).")
]
OperationId = Annotated[
    str | None,
    Parameter(help="What is sent twice under one id is done once (default: random)."),
]
Yes = Annotated[bool, Parameter(negative="", help="Do not ask for confirmation.")]


def url_of(store: str | None) -> str:
    """Give the store's URL: the option, else the environment, else the default."""
    return store or os.environ.get("TRIOLET_STORE") or DEFAULT_STORE
