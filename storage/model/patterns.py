"""Exit patterns: which exit codes a transition takes, and which pattern wins.

``*`` stands for any text, also none, and ``?`` for one character (a code point);
everything else is literal. Matching takes time linear in the length of the code,
whatever the pattern: one machine word holds all states of its automaton.
"""

from collections import deque
from collections.abc import Mapping
from typing import TypeAlias

from attrs import field, frozen

from .names import NameKind, check_name

ANY_TEXT = "*"
ANY_CHARACTER = "?"
WILDCARDS = frozenset({ANY_TEXT, ANY_CHARACTER})

Specificity: TypeAlias = tuple[int, int, int]


def check_pattern(text: object) -> str:
    """Return *text* when it is a legal exit pattern.

    Raises:
        InvalidName: When it breaks the rules for exit codes: text, 1 to 64 bytes, no
            surrounding white space, no control characters.
    """
    return check_name(text, NameKind.PATTERN)


def is_literal(pattern: str) -> bool:
    """Tell whether *pattern* has no wildcards, so that it matches only itself."""
    return WILDCARDS.isdisjoint(pattern)


def matches(pattern: str, code: str) -> bool:
    """Tell whether *pattern* takes *code*; ``Matcher`` does so repeatedly."""
    return Matcher.of(pattern).matches(code)


def specificity(pattern: str) -> Specificity:
    """Give a sort key that puts the more specific of two patterns first.

    More literal characters come first, then fewer wildcards, then more bytes. Equal
    keys are equal specificity.
    """
    wildcards = sum(char in WILDCARDS for char in pattern)
    return wildcards - len(pattern), wildcards, -len(pattern.encode())


def overlap(left: str, right: str) -> bool:
    """Tell whether some text matches both patterns.

    The search walks the product of both automata; a state says how many characters
    of each pattern are done.
    """
    seen = {(0, 0)}
    waiting = deque(seen)
    while waiting:
        i, j = waiting.popleft()
        if i == len(left) and j == len(right):
            return True
        for state in _successors(left[i : i + 1], right[j : j + 1]):
            following = (i + state[0], j + state[1])
            if following not in seen:
                seen.add(following)
                waiting.append(following)
    return False


def _successors(left: str, right: str) -> tuple[tuple[int, int], ...]:
    """Say how far the patterns may advance together; "" is the end of a pattern."""
    match left, right:
        case ("*", "*"):
            return (1, 0), (0, 1)
        case ("*", _):
            return ((1, 0), (0, 1)) if right else ((1, 0),)
        case (_, "*"):
            return ((0, 1), (1, 0)) if left else ((0, 1),)
        case ("", _) | (_, ""):
            return ()
        case ("?", _) | (_, "?"):
            return ((1, 1),)
        case _:
            return ((1, 1),) if left == right else ()


@frozen
class Matcher:
    """The automaton of one pattern, as bit masks.

    State *n* means that *n* characters of the pattern, stars not counted, are done;
    a set of states is an integer with bit *n* for state *n*.
    """

    _length: int
    """Characters of the pattern without its stars."""
    _stay: int
    """States in which a star lets any character pass."""
    _any: int
    """States in which a ``?`` comes next."""
    _next: Mapping[str, int] = field(hash=False)
    """By literal character, the states in which it, or a ``?``, comes next."""

    @classmethod
    def of(cls, pattern: str) -> "Matcher":
        """Build the automaton of *pattern*."""
        length = stay = any_next = 0
        literal_next: dict[str, int] = {}
        for char in pattern:
            state = 1 << length
            if char == ANY_TEXT:
                stay |= state
                continue
            if char == ANY_CHARACTER:
                any_next |= state
            else:
                literal_next[char] = literal_next.get(char, 0) | state
            length += 1
        following = {char: mask | any_next for char, mask in literal_next.items()}
        return cls(length, stay, any_next, following)

    def matches(self, code: str) -> bool:
        """Tell whether the pattern takes the whole of *code*."""
        states = 1
        for char in code:
            advancing = states & self._next.get(char, self._any)
            states = advancing << 1 | states & self._stay
            if not states:
                return False
        return states >> self._length == 1
