"""Which columns a reader delivers, and in what form.

The form is settled once, when the header is known; what is left for each chunk is one
callable that works in C as far as it goes.
"""

from collections import Counter
from collections.abc import Callable, Sequence
from operator import itemgetter
from typing import Any, TypeAlias

from attrs import Attribute, field, frozen

from ...storage.model.errors import InvalidValue
from .csv_faults import line_of
from .csv_source import CsvSource
from .errors import CsvColumnAmbiguous, CsvColumnMissing, quoted

Shaper: TypeAlias = Callable[[list[list[str]]], Sequence[Any]]
"""Turns the records of a chunk into items."""


def _columns(value: object) -> tuple[str, ...] | None:
    if value is None:
        return None
    if not isinstance(value, Sequence) or isinstance(value, str | bytes):
        raise InvalidValue("columns", "must be a sequence of column names")
    names = tuple(value)
    if not names or not all(isinstance(name, str) for name in names):
        raise InvalidValue("columns", "must be column names, at least one")
    if twice := [name for name, count in Counter(names).items() if count > 1]:
        raise InvalidValue("columns", f"must not name {quoted(twice)} twice")
    return names


def _check_flag(_: object, at: "Attribute[bool]", value: object) -> None:
    if not isinstance(value, bool):
        raise InvalidValue(at.name, "must be True or False")


def _check_dicts(layout: "Layout", at: "Attribute[bool]", value: object) -> None:
    _check_flag(layout, at, value)
    if value and not layout.header and layout.columns is None:
        raise InvalidValue(at.name, "needs names: columns, or a header")


@frozen(kw_only=True)
class Layout:
    """What was declared about columns; checked when it is made."""

    columns: tuple[str, ...] | None = field(converter=_columns)
    header: bool = field(validator=_check_flag)
    as_dicts: bool = field(validator=_check_dicts)

    @property
    def width(self) -> int | None:
        """Fields of each record, if the declaration says that."""
        if self.header or self.columns is None:
            return None
        return len(self.columns)

    @property
    def origin(self) -> str:
        """Say who determines the width."""
        if self.header:
            return "in the header"
        return "in the first record" if self.columns is None else "in columns"

    def shaper(self, source: CsvSource, names: Sequence[str] | None) -> Shaper:
        """Settle the form of the items.

        Args:
            source: Where to look for the header's line when it is at fault.
            names: The header's, None when there is no header.

        Raises:
            CsvColumnMissing: A declared column is not in the header.
            CsvColumnAmbiguous: A name that is needed is in the header twice.
        """
        if names is None:
            return self._unnamed()
        wanted = self.columns or (names if self.as_dicts else ())
        if missing := [name for name in wanted if name not in names]:
            reason = f"no column {quoted(missing)}; the header has {quoted(names)}"
            raise CsvColumnMissing(source.name, line_of(source, 0), reason)
        counts = Counter(names)
        if twice := [name for name in dict.fromkeys(wanted) if counts[name] > 1]:
            reason = (
                f"the header has {quoted(twice)} more than once; rename one in the "
                "file, or do not ask for columns by this name"
            )
            raise CsvColumnAmbiguous(source.name, line_of(source, 0), reason)
        if self.columns is None:
            return _dicts(tuple(names)) if self.as_dicts else _lists
        chosen = _chosen([names.index(name) for name in self.columns])
        if not self.as_dicts:
            return chosen
        to_dicts = _dicts(self.columns)
        return lambda rows: to_dicts(chosen(rows))

    def _unnamed(self) -> Shaper:
        if self.columns is None:
            return _lists
        return _dicts(self.columns) if self.as_dicts else _tuples


def _lists(rows: list[list[str]]) -> list[list[str]]:
    return rows


def _tuples(rows: list[list[str]]) -> list[tuple[str, ...]]:
    return list(map(tuple, rows))


def _dicts(names: tuple[str, ...]) -> Callable[[Sequence[Any]], list[dict[str, str]]]:
    return lambda rows: [dict(zip(names, row, strict=True)) for row in rows]


def _chosen(positions: list[int]) -> Callable[[list[list[str]]], list[tuple[str, ...]]]:
    if len(positions) == 1:
        only = itemgetter(*positions)
        return lambda rows: list(zip(map(only, rows)))
    pick = itemgetter(*positions)
    return lambda rows: list(map(pick, rows))
