"""``--json``: what a command came to, as one JSON object on standard output.

The object is made of the same values as the text for people, so that both say the same.
Values of secret parameters are in neither: they are not even stored.
"""

import json
from collections.abc import Iterable, Mapping
from enum import Enum

import attrs

from ...storage.model.errors import DefinitionError, TrioletError
from ...storage.model.parameters import JobParameter, ParameterSet
from .answers import Answer
from .exit_codes import CONFLICT, DONE, JOB_FAILED, JOB_STOPPED, REFUSED, UNKNOWN

SCHEMA_VERSION = 1

_OUTCOMES = {
    DONE: "success",
    REFUSED: "rejected",
    CONFLICT: "conflict",
    UNKNOWN: "unknown",
    JOB_FAILED: "failed",
    JOB_STOPPED: "stopped",
}


def answer_document(command: str, answer: Answer) -> str:
    """Write an answer."""
    diagnostics = [] if answer.warning is None else [_diagnostic(None, answer.warning)]
    return _document(command, answer.code, answer.value, diagnostics, answer.more)


def error_document(
    command: str,
    code: int,
    exc: BaseException,
    sentence: str,
    data: object = None,
) -> str:
    """Write an error; each of several mistakes has a diagnostic of its own."""
    if isinstance(exc, DefinitionError):
        every = [_diagnostic(one.code, str(one)) for one in exc.problems]
    else:
        stable = exc.code if isinstance(exc, TrioletError) else "internal_error"
        every = [_diagnostic(stable, sentence)]
    return _document(command, code, data, every, None)


def _diagnostic(code: str | None, message: str) -> dict[str, object]:
    return {"message": message} if code is None else {"code": code, "message": message}


def _document(
    command: str,
    code: int,
    data: object,
    diagnostics: list[dict[str, object]],
    more: int | None,
) -> str:
    document: dict[str, object] = {
        "schema_version": SCHEMA_VERSION,
        "command": command,
        "outcome": _OUTCOMES.get(code, "error"),
        "exit_code": code,
        "data": plain_value(data),
        "diagnostics": diagnostics,
    }
    if more is not None:
        document["page"] = {"before": more}
    return json.dumps(document, ensure_ascii=False, sort_keys=True)


def plain_value(value: object) -> object:
    """Make JSON of records: enums by value, bytes as hexadecimal, errors by code."""
    match value:
        case JobParameter():
            return _parameter(value)
        case ParameterSet():
            return [_parameter(one) for one in value]
        case Enum():
            return value.value
        case None | bool() | int() | float() | str():
            return value
        case bytes():
            return value.hex()
        case TrioletError():
            return {"code": value.code, "message": str(value)}
        case Mapping():
            return {str(key): plain_value(one) for key, one in value.items()}
    kind: type = type(value)
    if attrs.has(kind):
        names = (one.name for one in attrs.fields(kind))
        return {name: plain_value(getattr(value, name)) for name in names}
    if isinstance(value, Iterable):
        return [plain_value(one) for one in value]
    return str(value)


def _parameter(one: JobParameter) -> dict[str, object]:
    return {
        "name": one.name,
        "type": one.kind.name,
        "value": None if one.secret else one.value,
        "identifying": one.identifying,
        "secret": one.secret,
    }
