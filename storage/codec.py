"""Canonical JSON and the formats of what the store keeps as text.

One text per value: sorted keys, no spaces, UTF-8 unescaped, no NaN. What cannot be
read back exactly is refused here, before anything is written.
"""

import json
import math
from collections.abc import Iterable
from typing import TypeVar, cast

from attrs import frozen
from cattrs import Converter

from .commands.advancing import StaleVersion
from .commands.opening import AlreadyRunning
from .commands.operating import ActionNotAllowed, EvidenceChanged, NotLatestAttempt
from .commands.ownership import OwnerFacts
from .commands.questions import ExecutionNotFound
from .model.errors import CorruptRecord, InvalidValue, Rejection, with_article
from .model.execution import Failure, NodeTarget, Stop, Target, Terminal
from .model.json import Json, JsonObject
from .model.launch_request import LaunchRefusal
from .model.names import NameKind, check_name
from .model.parameters import JobParameter, ParameterKind, ParameterSet, ParameterValue

T = TypeVar("T")

CHECKPOINT_FORMAT = "oxide-batch.checkpoint"
CONTEXT_FORMAT = "oxide-batch.execution-context"
FORMAT_VERSION = 1
BYTES_MAX = 65_536
DEPTH_MAX = 16
PARAMETER_BYTES_MAX = 1_048_576


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
        value = json.loads(text, parse_constant=_refuse_constant)
    except (ValueError, RecursionError):
        raise CorruptRecord(what, "it is not JSON") from None
    if not isinstance(value, dict):
        raise CorruptRecord(what, "it is not a JSON object")
    if depth_of(value) > DEPTH_MAX:
        raise CorruptRecord(what, f"it is nested deeper than {DEPTH_MAX} levels")
    return value


def _refuse_constant(name: str) -> None:
    raise ValueError(name)


def make_record_codec() -> Converter:
    """Build the converter of stored records: enums by value, unknown keys refused."""
    return Converter(forbid_extra_keys=True, omit_if_default=True)


_records = make_record_codec()


def encode_failure(failure: Failure | None) -> str | None:
    """Write a failure as stored text."""
    return None if failure is None else _dump(_records.unstructure(failure))


def decode_failure(text: str | None) -> Failure | None:
    """Read a failure back.

    Raises:
        CorruptRecord: When the text is not a failure of this format.
    """
    return None if text is None else _structure(text, Failure, "a failure")


def _structure(text: str, kind: type[T], what: str) -> T:
    try:
        return _records.structure(json.loads(text), kind)
    except Exception as exc:
        raise CorruptRecord(what, type(exc).__name__) from exc


def encode_parameters(parameters: ParameterSet, *, identifying_only: bool) -> str:
    """Write parameters as stored text: an object by name, secrets without value.

    Raises:
        InvalidValue: When the text would have more than 1 MiB.
    """
    document: dict[str, dict[str, Json]] = {}
    for one in parameters:
        if identifying_only and not one.identifying:
            continue
        member: dict[str, Json] = {
            "identifying": one.identifying,
            "type": one.kind.name,
        }
        if one.secret:
            member["secret"] = True
        else:
            member["value"] = one.value
        document[one.name] = member
    text = _dump(document)
    if len(text.encode()) > PARAMETER_BYTES_MAX:
        reason = f"take more than {PARAMETER_BYTES_MAX} bytes"
        raise InvalidValue("the parameters", reason)
    return text


_BLANK: dict[ParameterKind, ParameterValue] = {
    ParameterKind.STRING: "",
    ParameterKind.I64: 0,
    ParameterKind.U64: 0,
    ParameterKind.BOOL: False,
}


def decode_parameters(text: str) -> ParameterSet:
    """Read parameters back; a secret one has a blank value.

    Raises:
        CorruptRecord: When the text is not parameters of this format.
    """
    try:
        return ParameterSet(
            tuple(_parameter(name, member) for name, member in json.loads(text).items())
        )
    except Exception as exc:
        raise CorruptRecord("a parameter set", type(exc).__name__) from exc


def _parameter(name: str, member: dict[str, Json]) -> JobParameter:
    kind = ParameterKind[str(member["type"])]
    secret = bool(member.get("secret", False))
    value = _BLANK[kind] if secret else member["value"]
    identifying = bool(member["identifying"])
    return JobParameter(name, kind, cast("ParameterValue", value), identifying, secret)


def encode_target(target: Target) -> str:
    """Write a transition's target: ``node:ID``, ``terminal:KIND`` or ``resume:ID``."""
    match target:
        case NodeTarget(node):
            return f"node:{node}"
        case Stop(node):
            return f"resume:{node}"
        case Terminal():
            return f"terminal:{target.value}"


_TERMINALS = frozenset(terminal.value for terminal in Terminal)


def decode_target(text: str) -> Target:
    """Read a target back.

    Raises:
        CorruptRecord: When the word is not a target.
    """
    kind, _, name = text.partition(":")
    if kind == "node" and name:
        return NodeTarget(name)
    if kind == "resume" and name:
        return Stop(name)
    if kind == "terminal" and name in _TERMINALS:
        return Terminal(name)
    raise CorruptRecord("a decision", "its target is unreadable")


def encode_facts(facts: OwnerFacts) -> str:
    """Write who an owner is as stored text."""
    return _dump(_records.unstructure(facts))


def decode_facts(text: str) -> OwnerFacts:
    """Read who an owner is.

    Raises:
        CorruptRecord: When the text is not of this format.
    """
    return _structure(text, OwnerFacts, "an owner")


REFUSALS: dict[str, type[Rejection]] = {
    kind.code: kind
    for kind in (
        ActionNotAllowed,
        AlreadyRunning,
        EvidenceChanged,
        ExecutionNotFound,
        NotLatestAttempt,
        StaleVersion,
    )
}
"""Why an operator's action may be refused, by code."""


def encode_refusal(refusal: Rejection | None) -> str | None:
    """Write why an operator's action was refused: code and members."""
    if refusal is None:
        return None
    members = _records.unstructure(refusal)
    return _dump({"code": refusal.code, "members": members})


def decode_refusal(text: str) -> Rejection:
    """Read a refusal back.

    Raises:
        CorruptRecord: When the text is not a refusal of this format.
    """
    try:
        document = json.loads(text)
        return _records.structure(document["members"], REFUSALS[document["code"]])
    except Exception as exc:
        raise CorruptRecord("a refusal", type(exc).__name__) from exc


def encode_launch_refusal(refusal: LaunchRefusal | None) -> str | None:
    """Write why a launch request was refused."""
    return None if refusal is None else _dump(_records.unstructure(refusal))


def decode_launch_refusal(text: str | None) -> LaunchRefusal | None:
    """Read why a launch request was refused.

    Raises:
        CorruptRecord: When the text is not of this format.
    """
    return None if text is None else _structure(text, LaunchRefusal, "a refusal")
