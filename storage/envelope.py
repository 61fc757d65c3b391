"""Canonical JSON, and the envelopes in which state and positions are kept.

One text per value: sorted keys, no spaces, UTF-8 unescaped, no NaN. What cannot be
read back exactly is refused here, before anything is written.
"""

import json
import math
from collections.abc import Iterable
from typing import cast

from attrs import frozen

from .model.errors import CorruptRecord, InvalidValue, with_article
from .model.json import JsonObject
from .model.names import NameKind, check_name

CHECKPOINT_FORMAT = "oxide-batch.checkpoint"
CONTEXT_FORMAT = "oxide-batch.execution-context"
FORMAT_VERSION = 1
BYTES_MAX = 65_536
DEPTH_MAX = 16


def canonical_json(value: object, what: str = "the value") -> str:
    """Write *value* in the one canonical form.

    Raises:
        InvalidValue: When it is not JSON: another type, a key that is not text, NaN
            or infinity, U+0000 or a lone surrogate in a text, nesting or an integer
            beyond the interpreter's limit. *what* names the culprit in the sentence.
    """
    try:
        _check(value, what)
        return _dump(value)
    except RecursionError:
        raise InvalidValue(what, "is nested too deeply or refers to itself") from None
    except ValueError:
        raise InvalidValue(what, "holds an integer of too many digits") from None


_dump = json.JSONEncoder(
    sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False
).encode


def _check(value: object, what: str) -> None:
    match value:
        case None | bool() | int():
            return
        case str():
            _check_text(value, what)
        case float():
            if not math.isfinite(value):
                raise InvalidValue(what, "holds NaN or infinity, which JSON has not")
        case dict():
            for key, item in value.items():
                if not isinstance(key, str):
                    kind = type(key).__name__
                    raise InvalidValue(what, f"has a key of type {kind}, not str")
                _check_text(key, f"a key of {what}")
                _check(item, f"{what}[{key!r}]")
        case list() | tuple():
            for index, item in enumerate(value):
                _check(item, f"{what}[{index}]")
        case _:
            kind = with_article(type(value).__name__)
            raise InvalidValue(what, f"holds {kind}, which is not JSON")


def _check_text(text: str, what: str) -> None:
    if "\0" in text:
        raise InvalidValue(what, "holds the character U+0000")
    try:
        text.encode()
    except UnicodeEncodeError:
        raise InvalidValue(what, "holds a lone surrogate") from None


def depth_of(value: object) -> int:
    """Measure nesting: a scalar is 1, each container adds 1."""
    depth, level = 0, [value]
    while level:
        depth += 1
        level = [item for container in level for item in _items(container)]
    return depth


def _items(value: object) -> Iterable[object]:
    match value:
        case dict():
            return value.values()
        case list() | tuple():
            return value
        case _:
            return ()


@frozen
class Schema:
    """The identity of a state's shape: who wrote it, in which version."""

    id: str
    version: int = 1

    def __attrs_post_init__(self) -> None:
        check_name(self.id, NameKind.SCHEMA)
        if self.version < 1:
            raise InvalidValue("a schema version", "must be at least 1")


STATE_SCHEMA = Schema("triolet.state")
POSITION_SCHEMA = Schema("triolet.position")


def seal(
    kind: str, schema: Schema, payload: object, what: str, bytes_max: int = BYTES_MAX
) -> str:
    """Put *payload* into a canonical, versioned envelope.

    Args:
        kind: CHECKPOINT_FORMAT or CONTEXT_FORMAT.
        schema: Names the shape of the payload.
        payload: A JSON object.
        what: Names the owner of the payload in errors.
        bytes_max: How large the envelope may be; no more than can be read back.

    Raises:
        InvalidValue: When the payload is not a JSON object, or the envelope has more
            than *bytes_max* bytes or more than 16 levels.
    """
    if not isinstance(payload, dict):
        found = type(payload).__name__
        raise InvalidValue(what, f"must be a dict of JSON values, not {found}")
    canonical_json(payload, what)
    envelope = {
        "format": kind,
        "format_version": FORMAT_VERSION,
        "payload": payload,
        "schema": schema.id,
        "schema_version": schema.version,
    }
    if depth_of(envelope) > DEPTH_MAX:
        raise InvalidValue(what, f"is nested deeper than {DEPTH_MAX} levels")
    text = _dump(envelope)
    size = len(text.encode())
    if size > bytes_max:
        raise InvalidValue(what, f"takes {size} bytes, at most {bytes_max} are allowed")
    return text


def unseal(kind: str, schema: Schema, text: str | None, what: str) -> JsonObject:
    """Take the payload out of an envelope; None is the empty initial one.

    The checks run in a fixed order: size, JSON, depth, format, format version,
    schema id and version, payload. Nothing is defaulted or reinterpreted.

    Raises:
        CorruptRecord: With the first check that fails.
    """
    if text is None:
        return {}
    envelope = _parse(text, what)
    checks = (
        (envelope.get("format") == kind, "is of another format"),
        (
            _is_number(envelope.get("format_version"), FORMAT_VERSION),
            "has another format version",
        ),
        (envelope.get("schema") == schema.id, "follows another schema"),
        (
            _is_number(envelope.get("schema_version"), schema.version),
            "has another schema version",
        ),
        (isinstance(envelope.get("payload"), dict), "has no object as payload"),
        (len(envelope) == 5, "has unknown members"),
    )
    for passed, reason in checks:
        if not passed:
            raise CorruptRecord(what, f"it {reason}")
    return cast("JsonObject", envelope["payload"])


def _is_number(found: object, wanted: int) -> bool:
    return type(found) is int and found == wanted


def _parse(text: str, what: str) -> JsonObject:
    if len(text.encode()) > BYTES_MAX:
        raise CorruptRecord(what, f"it has more than {BYTES_MAX} bytes")
    try:
        value = _load(text)
    except (ValueError, RecursionError):
        raise CorruptRecord(what, "it is not JSON") from None
    if not isinstance(value, dict):
        raise CorruptRecord(what, "it is not a JSON object")
    if depth_of(value) > DEPTH_MAX:
        raise CorruptRecord(what, f"it is nested deeper than {DEPTH_MAX} levels")
    return value


def _refuse_constant(name: str) -> None:
    raise ValueError(name)


_load = json.JSONDecoder(parse_constant=_refuse_constant).decode
