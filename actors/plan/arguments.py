"""Launch parameters against their declaration: checked, completed and parsed.

A job that declares no parameters takes whatever it is given, all of it identifying.
No sentence here ever holds a value.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import TypeAlias

from ...storage.model.errors import InvalidParameter, Problem, listed
from ...storage.model.names import NameKind, check_name
from ...storage.model.parameters import (
    RESERVED_PREFIX,
    JobParameter,
    ParameterKind,
    ParameterSet,
    ParameterValue,
    parameters_of,
)
from .checks import name_reasons
from .definition import Parameter, Required
from .suggestion import did_you_mean

ParameterType: TypeAlias = type[str | int | bool]

TYPES: Mapping[str, ParameterType] = {"str": str, "int": int, "bool": bool}
BOOLEANS = {
    **dict.fromkeys(("true", "yes", "1"), True),
    **dict.fromkeys(("false", "no", "0"), False),
}
_INTEGER = re.compile(r"[+-]?[0-9]{1,40}", re.ASCII)


def declaration_problems(declared: Sequence[object]) -> Iterator[Problem]:
    """Find everything that is wrong with the parameters that a job declares."""
    seen = set()
    for position, one in enumerate(declared, 1):
        if not isinstance(one, Parameter):
            kind = type(one).__name__
            reason = f"parameter {position} must be a Parameter, not {kind}"
            yield Problem(None, reason)
        elif reason := next(name_reasons(one.name, NameKind.PARAMETER), ""):
            yield Problem(None, f"parameter {position}: {reason}")
        else:
            if one.name in seen:
                yield Problem(None, f"parameter {one.name!r} is declared twice")
            seen.add(one.name)
            for reason in _declaration_reasons(one):
                yield Problem(None, reason)


def _declaration_reasons(one: Parameter) -> Iterator[str]:
    if one.name.startswith(RESERVED_PREFIX):
        yield f"parameter {one.name!r} may not start with {RESERVED_PREFIX!r}"
    if one.type not in TYPES.values():
        yield f"the type of parameter {one.name!r} must be str, int or bool"
    elif not isinstance(one.default, Required):
        try:
            _checked(one, one.default)
        except InvalidParameter as exc:
            yield f"the default of {exc}"


def resolve(declared: Sequence[Parameter], given: Mapping[str, object]) -> ParameterSet:
    """Make the parameters of a launch out of what was given to it.

    Args:
        declared: The job's declaration; empty means that anything goes.
        given: Python values by name.

    Raises:
        InvalidParameter: When a name is reserved, unknown to the declaration or
            missing, or a value has another type than declared.
        InvalidName: When a name breaks the rules for parameter names.
    """
    if not declared:
        return parameters_of(given)
    for name in given:
        _check_known(name, declared)
    missing = [
        one.name
        for one in declared
        if one.name not in given and isinstance(one.default, Required)
    ]
    if missing:
        raise InvalidParameter(missing[0], _missing(missing[1:]))
    return ParameterSet(
        tuple(_checked(one, given.get(one.name, one.default)) for one in declared)
    )


def _missing(others: Sequence[str]) -> str:
    verb = "are" if len(others) > 1 else "is"
    tail = f", and so {verb} {listed(map(repr, others))}" if others else ""
    return f"is required, but missing{tail}"


def _check_known(name: str, declared: Sequence[Parameter]) -> None:
    check_name(name, NameKind.PARAMETER)
    known = [one.name for one in declared]
    if name in known:
        return
    if name.startswith(RESERVED_PREFIX):
        reason = f"is reserved: names may not start with {RESERVED_PREFIX!r}"
        raise InvalidParameter(name, reason)
    hint = did_you_mean(name, known) or f": it takes {listed(map(repr, known))}"
    raise InvalidParameter(name, f"is unknown to the job{hint}")


def _checked(one: Parameter, value: object) -> JobParameter:
    if not isinstance(value, one.type) or (
        isinstance(value, bool) and one.type is not bool
    ):
        reason = f"must be {one.type.__name__}, not {type(value).__name__}"
        raise InvalidParameter(one.name, reason)
    kind = ParameterKind.of(one.name, value)
    return JobParameter(one.name, kind, value, one.identifying, one.secret)


def parse_arguments(
    declared: Sequence[Parameter], pairs: Sequence[str]
) -> dict[str, ParameterValue]:
    """Read the parameters of a command line.

    Args:
        declared: The job's declaration; empty means that anything goes.
        pairs: Words like ``day=2026-11-30``, ``count:int=5``, ``dry:bool=yes``. The
            declared type decides; without a declaration, text is the default.

    Raises:
        InvalidParameter: When a word has no value, is given twice, is unknown to the
            declaration or does not read as its type.
        InvalidName: When a name breaks the rules for parameter names.
    """
    values: dict[str, ParameterValue] = {}
    for pair in pairs:
        left, equals, text = pair.partition("=")
        if not equals:
            raise InvalidParameter(left, "has no value: write NAME=VALUE")
        name, kind = _typed(declared, left)
        if name in values:
            raise InvalidParameter(name, "is given twice")
        values[name] = _parsed(name, kind, text)
    return values


def _typed(declared: Sequence[Parameter], left: str) -> tuple[str, ParameterType]:
    """Split ``NAME:TYPE``, where a declared name may hold a colon itself."""
    types = {one.name: one.type for one in declared}
    if left in types:
        return left, types[left]
    name, colon, word = left.rpartition(":")
    if not colon:
        name, word = left, "str"
    check_name(name, NameKind.PARAMETER)
    if word not in TYPES:
        reason = "has an unknown type: after the colon write str, int or bool"
        raise InvalidParameter(name, reason)
    if declared:
        _check_known(name, declared)
        if types[name] is not TYPES[word]:
            reason = f"must be {types[name].__name__}, not {word}"
            raise InvalidParameter(name, reason)
    return name, TYPES[word]


def _parsed(name: str, kind: ParameterType, text: str) -> ParameterValue:
    if kind is int:
        if not _INTEGER.fullmatch(text):
            raise InvalidParameter(name, "must be an integer, in decimal digits")
        return int(text)
    if kind is bool:
        if text.lower() not in BOOLEANS:
            choices = listed(repr(word) for word in BOOLEANS)
            raise InvalidParameter(name, f"must be a truth value, one of {choices}")
        return BOOLEANS[text.lower()]
    return text
