"""How often an attempt has come to each node: more than once only in a loop."""

from attrs import define, field


@define
class Visits:
    """Counts the visits of nodes, and takes them back with a refused command."""

    _counts: dict[str, int] = field(factory=dict, init=False)
    _fresh: list[str] = field(factory=list, init=False)
    """Nodes that were come to since the last command was carried out."""
    repeated: bool = field(default=False, init=False)
    """Whether any node was come to more than once."""

    def next_of(self, node: str) -> int:
        """Give which visit the next one would be, from 1."""
        return self._counts.get(node, 0) + 1

    def come_to(self, node: str) -> int:
        """Count a visit; give which one it is."""
        count = self._counts[node] = self._counts.get(node, 0) + 1
        self._fresh.append(node)
        if count > 1:
            self.repeated = True
        return count

    def settle(self) -> None:
        """Take in that a command was carried out: what led to it stays."""
        self._fresh.clear()

    def take_back(self) -> None:
        """Take in that a command was refused: what came after its step never was."""
        for node in self._fresh:
            self._counts[node] -= 1
        self._fresh.clear()
