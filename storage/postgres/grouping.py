"""Commands that are alike carried out by one statement, where they are many.

A statement costs the server more to begin than a row costs it to write. Commands are
only taken together where nothing between them could tell the difference: they touch
different executions, or different partitions of one.
"""

from collections.abc import Container, Iterable, Sequence
from typing import Any

from attrs import Factory, define, frozen

from .arrays import array_of
from .binding import TOGETHER_MAX
from .chain import Compact, Likeness
from .wire import Statement

TOGETHER_MIN = 3
"""Fewer are faster one by one."""


@frozen
class Packet:
    """A statement, and the commands whose replies it notes, by their place in a batch."""

    statement: Statement
    commands: Sequence[tuple[int, Compact[Any]]]


def packed(
    commands: Sequence[tuple[int, Compact[Any]]], singly: Container[int] = ()
) -> list[Packet]:
    """Give the statements for *commands*; those at *singly* have one of their own."""
    if len(commands) < TOGETHER_MIN:
        return [_alone(one) for one in commands]
    packing = _Packing()
    for place, command in commands:
        if command.likeness is None or place in singly:
            packing.close()
            packing.packets.append(_alone((place, command)))
        else:
            packing.add(place, command, command.likeness)
    packing.close()
    return packing.packets


@define
class _Packing:
    packets: list[Packet] = Factory(list)
    _open: dict[Likeness, list[tuple[int, Compact[Any]]]] = Factory(dict)
    _whole: set[int] = Factory(set)
    """Executions that an open command moves on as a whole."""
    _parted: set[int] = Factory(set)
    """Executions of which open commands touch partitions,"""
    _partitions: set[tuple[int, int]] = Factory(set)
    """and those partitions."""

    def add(self, place: int, command: Compact[Any], likeness: Likeness) -> None:
        if self._clashes(command):
            self.close()
        if command.partition is None:
            self._whole.add(command.execution)
        else:
            self._parted.add(command.execution)
            self._partitions.add(command.partition)
        self._open.setdefault(likeness, []).append((place, command))

    def _clashes(self, command: Compact[Any]) -> bool:
        if command.execution in self._whole:
            return True
        if command.partition is None:
            return command.execution in self._parted
        return command.partition in self._partitions

    def close(self) -> None:
        for likeness, alike in self._open.items():
            for at in range(0, len(alike), TOGETHER_MAX):
                self.packets += _packets(likeness, alike[at : at + TOGETHER_MAX])
        self._open.clear()
        self._whole.clear()
        self._parted.clear()
        self._partitions.clear()


def _packets(
    likeness: Likeness, alike: Sequence[tuple[int, Compact[Any]]]
) -> Iterable[Packet]:
    if len(alike) < TOGETHER_MIN:
        return map(_alone, alike)
    columns = zip(*(command.statement[1] for _, command in alike), strict=True)
    arrays = list(map(array_of, likeness.kinds, columns))
    return [Packet((likeness.sql, arrays), alike)]


def _alone(one: tuple[int, Compact[Any]]) -> Packet:
    return Packet(one[1].statement, [one])
