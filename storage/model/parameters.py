"""Launch parameters: typed values, the identity that they give, and their digests.

A value is one of four kinds. ``repr`` never shows a value. The digests are durable:
changing one byte of their input would orphan every stored instance.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from enum import Enum
from hashlib import sha256
from itertools import pairwise
from typing import TypeAlias

from attrs import field, frozen

from .errors import InvalidParameter
from .names import NameKind, check_name

ParameterValue: TypeAlias = str | int | bool

STRING_BYTES_MAX = 65_536
RESERVED_PREFIX = "triolet."
RUN_PARAMETER = "triolet.run"


class ParameterKind(Enum):
    """The four kinds of values, each with the tag byte that enters digests."""

    STRING = 1
    I64 = 2
    U64 = 3
    BOOL = 4

    @classmethod
    def of(cls, name: str, value: object) -> "ParameterKind":
        """Find the kind of a Python value: int is I64, above its range U64.

        Raises:
            InvalidParameter: For any other type or an integer out of range.
        """
        if isinstance(value, bool):
            return cls.BOOL
        if isinstance(value, str):
            return cls.STRING
        if isinstance(value, int):
            if -(1 << 63) <= value < 1 << 63:
                return cls.I64
            if 0 <= value < 1 << 64:
                return cls.U64
            raise InvalidParameter(name, "is an integer of more than 64 bits")
        reason = f"must be str, int or bool, not {type(value).__name__}"
        raise InvalidParameter(name, reason)


def _is_int(value: object, low: int, high: int) -> bool:
    return (
        isinstance(value, int) and not isinstance(value, bool) and low <= value < high
    )


_FITS: dict[ParameterKind, Callable[[object], bool]] = {
    ParameterKind.STRING: lambda value: isinstance(value, str),
    ParameterKind.I64: lambda value: _is_int(value, -(1 << 63), 1 << 63),
    ParameterKind.U64: lambda value: _is_int(value, 0, 1 << 64),
    ParameterKind.BOOL: lambda value: isinstance(value, bool),
}


@frozen(repr=False)
class JobParameter:
    """One value of one launch."""

    name: str
    kind: ParameterKind
    value: ParameterValue
    identifying: bool = True
    secret: bool = False

    def __attrs_post_init__(self) -> None:
        check_name(self.name, NameKind.PARAMETER)
        if self.kind is ParameterKind.STRING:
            self._check_text(str(self.value))
        fits = _FITS[self.kind]
        if not fits(self.value):
            reason = f"does not fit its kind {self.kind.name}"
            raise InvalidParameter(self.name, reason)

    def __repr__(self) -> str:
        return f"JobParameter({self.kind.name}, <redacted>)"

    def encoded(self, length_bytes: int) -> bytes:
        """Encode the value for a digest, text with a length prefix of that width."""
        if self.kind is ParameterKind.STRING:
            raw = str(self.value).encode()
            return len(raw).to_bytes(length_bytes, "big") + raw
        if self.kind is ParameterKind.BOOL:
            return b"\1" if self.value else b"\0"
        signed = self.kind is ParameterKind.I64
        return int(self.value).to_bytes(8, "big", signed=signed)

    def _check_text(self, text: str) -> None:
        if "\0" in text:
            raise InvalidParameter(self.name, "holds the character U+0000")
        try:
            size = len(text.encode())
        except UnicodeEncodeError:
            raise InvalidParameter(self.name, "holds a lone surrogate") from None
        if size > STRING_BYTES_MAX:
            reason = f"has {size} bytes, at most {STRING_BYTES_MAX} are allowed"
            raise InvalidParameter(self.name, reason)


def _by_name_bytes(parameters: Iterable[JobParameter]) -> tuple[JobParameter, ...]:
    ordered = sorted(parameters, key=lambda one: one.name.encode())
    for left, right in pairwise(ordered):
        if left.name == right.name:
            raise InvalidParameter(left.name, "is given twice")
    return tuple(ordered)


@frozen(repr=False)
class ParameterSet:
    """All parameters of one launch, ordered by name bytes, each name once."""

    items: tuple[JobParameter, ...] = field(default=(), converter=_by_name_bytes)
    _keys: dict[str, bytes] = field(factory=dict, init=False, eq=False)
    """Digests that were made already, by job."""

    def __iter__(self) -> Iterator[JobParameter]:
        return iter(self.items)

    def __len__(self) -> int:
        return len(self.items)

    def __repr__(self) -> str:
        count = sum(one.identifying for one in self.items)
        return f"ParameterSet({len(self.items)} parameters, {count} identifying)"

    def values(self) -> dict[str, ParameterValue]:
        """Give the values by name, as user code sees them."""
        return {one.name: one.value for one in self.items}

    def with_run(self, number: int) -> "ParameterSet":
        """Add the reserved identifying parameter that makes a launch a new run."""
        run = JobParameter(RUN_PARAMETER, ParameterKind.I64, number)
        return ParameterSet((*self.items, run))

    def instance_key(self, job: str) -> bytes:
        """Digest the identity of an instance, version 1: 32 bytes, never to change.

        Only identifying parameters enter, in the order of their name bytes.
        """
        if (known := self._keys.get(job)) is not None:
            return known
        parts = [b"\1", _prefixed(job, 4)]
        for one in self.items:
            if one.identifying:
                tag = one.kind.value.to_bytes(1, "big")
                parts += (_prefixed(one.name, 4), tag, one.encoded(4))
        key = self._keys[job] = sha256(b"".join(parts)).digest()
        return key

    def projection(self) -> bytes:
        """Digest all parameters for flow records: 32 bytes, no value is readable."""
        parts = [b"oxide-batch.flow-parameters.v1\0"]
        for one in self.items:
            role = b"\1" if one.identifying else b"\0"
            tag = one.kind.value.to_bytes(1, "big")
            parts += (_prefixed(one.name, 8), role, tag, one.encoded(8))
        return sha256(b"".join(parts)).digest()


def _prefixed(text: str, length_bytes: int) -> bytes:
    raw = text.encode()
    return len(raw).to_bytes(length_bytes, "big") + raw


def parameters_of(values: Mapping[str, object]) -> ParameterSet:
    """Make identifying, undeclared parameters of plain Python values.

    Raises:
        InvalidParameter: For a value of another type than str, int or bool, or a
            name with the reserved prefix ``triolet.``.
        InvalidName: When a name breaks the rules for parameter names.
    """
    items = []
    for name, value in values.items():
        check_name(name, NameKind.PARAMETER)
        if name.startswith(RESERVED_PREFIX):
            reason = f"is reserved: names may not start with {RESERVED_PREFIX!r}"
            raise InvalidParameter(name, reason)
        kind = ParameterKind.of(name, value)
        assert isinstance(value, (str, int, bool))
        items.append(JobParameter(name, kind, value))
    return ParameterSet(tuple(items))
