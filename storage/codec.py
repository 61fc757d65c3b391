"""The records that the store keeps as text: failures, parameters, targets, refusals."""

import json
from typing import TypeVar, cast

from cattrs import Converter

from .commands.advancing import StaleVersion
from .commands.opening import AlreadyRunning
from .commands.operating import ActionNotAllowed, EvidenceChanged, NotLatestAttempt
from .commands.ownership import OwnerFacts
from .commands.questions import ExecutionNotFound
from .envelope import canonical_json
from .model.errors import CorruptRecord, InvalidValue, Rejection
from .model.execution import Failure, NodeTarget, Stop, Target, Terminal
from .model.json import Json
from .model.launch_request import LaunchRefusal
from .model.parameters import JobParameter, ParameterKind, ParameterSet, ParameterValue

T = TypeVar("T")

PARAMETER_BYTES_MAX = 1_048_576


def make_record_codec() -> Converter:
    """Build the converter of stored records: enums by value, unknown keys refused."""
    return Converter(forbid_extra_keys=True, omit_if_default=True)


_records = make_record_codec()


def encode_failure(failure: Failure | None) -> str | None:
    """Write a failure as stored text."""
    return None if failure is None else canonical_json(_records.unstructure(failure))


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
    text = canonical_json(document)
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
    return canonical_json(_records.unstructure(facts))


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
    return canonical_json({"code": refusal.code, "members": members})


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
    return None if refusal is None else canonical_json(_records.unstructure(refusal))


def decode_launch_refusal(text: str | None) -> LaunchRefusal | None:
    """Read why a launch request was refused.

    Raises:
        CorruptRecord: When the text is not of this format.
    """
    return None if text is None else _structure(text, LaunchRefusal, "a refusal")
