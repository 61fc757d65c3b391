"""Names and tokens: what may be called what.

Names are compared byte for byte and never normalised. An error names the kind and
the rule, never the text: a name that is refused may hold anything.
"""

import unicodedata
from enum import Enum

from .errors import InvalidName


class NameKind(Enum):
    """The kinds of names, each with its longest length in UTF-8 bytes."""

    JOB = ("job name", 128)
    STEP = ("step name", 128)
    NODE = ("node id", 128)
    PARAMETER = ("parameter name", 128)
    REVISION = ("revision", 128)
    LISTENER = ("listener name", 128)
    SCHEMA = ("state schema id", 128)
    EXIT_CODE = ("exit code", 64)
    PATTERN = ("exit pattern", 64)

    def __init__(self, label: str, bytes_max: int) -> None:
        self.label = label
        self.bytes_max = bytes_max


def check_name(text: object, kind: NameKind) -> str:
    """Return *text* when it is a legal name of this *kind*.

    Raises:
        InvalidName: With the first rule that is broken: it must be a string, not
            empty, within the kind's byte length, without surrounding white space,
            without control characters (the error gives the character's index).
    """
    if not isinstance(text, str):
        raise InvalidName(kind.label, f"must be text, not {type(text).__name__}")
    if not text:
        raise InvalidName(kind.label, "must not be empty")
    try:
        size = len(text.encode())
    except UnicodeEncodeError as exc:
        reason = f"holds a lone surrogate at index {exc.start}"
        raise InvalidName(kind.label, reason) from None
    if size > kind.bytes_max:
        reason = f"has {size} bytes, at most {kind.bytes_max} are allowed"
        raise InvalidName(kind.label, reason)
    if text != text.strip():
        raise InvalidName(kind.label, "must not begin or end with white space")
    for index, char in enumerate(text):
        if unicodedata.category(char) == "Cc":
            raise InvalidName(kind.label, f"has a control character at index {index}")
    return text
