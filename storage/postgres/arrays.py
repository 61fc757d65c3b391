"""Arrays as PostgreSQL reads them, written here so that one value binds many."""

from collections.abc import Callable, Sequence

from ..model.errors import InternalError
from ..sql.session import Value


def array_of(kind: str, values: Sequence[Value]) -> str:
    """Write *values* as an array.

    Args:
        kind: Their SQL type: ``bigint``, ``text`` or ``bytea``.
        values: All of that type, or None.
    """
    return _WRITERS[kind](values)


def _numbers(values: Sequence[Value]) -> str:
    return str(list(values)).translate(_BRACES).replace("None", "NULL")


def _texts(values: Sequence[Value]) -> str:
    return "{" + ",".join(map(_text, values)) + "}"


def _text(value: Value) -> str:
    if value is None:
        return "NULL"
    if not isinstance(value, str):
        raise InternalError("a text was to be bound")
    if '"' in value or "\\" in value:
        value = value.translate(_ESCAPES)
    return f'"{value}"'


def _bytes(values: Sequence[Value]) -> str:
    return "{" + ",".join(map(_hex, values)) + "}"


def _hex(value: Value) -> str:
    if not isinstance(value, bytes):
        raise InternalError("bytes were to be bound")
    return f'"\\\\x{value.hex()}"'


_BRACES = str.maketrans("[]", "{}")
_ESCAPES = str.maketrans({"\\": "\\\\", '"': '\\"'})
_WRITERS: dict[str, Callable[[Sequence[Value]], str]] = {
    "bigint": _numbers,
    "text": _texts,
    "bytea": _bytes,
}
