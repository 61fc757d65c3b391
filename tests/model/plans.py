"""Random plans, and the jobs and scripted user code that they stand for."""

from collections.abc import Callable, Iterator, Mapping
from functools import lru_cache
from itertools import product
from string import ascii_lowercase

from attrs import define, evolve, field
from hypothesis import strategies as st

from tests.model.interpreter import (
    COMPLETE,
    RESUME,
    TERMINALS,
    DecisionSpec,
    Odd,
    Outcome,
    Rules,
    Spec,
    SplitSpec,
    StepSpec,
    fits,
    is_line,
    rank,
)
from triolet.actors import (
    DeciderContext,
    Decision,
    Exit,
    Job,
    Node,
    Split,
    Step,
    StepContext,
    StepListener,
    Stop,
)
from triolet.storage.model.execution import End, Terminal

SPLITS_DEEP = 2
SIZES = (1, 2, 3, 4, 5, 6, 7, 7, 7)
PATTERNS = (
    "*", "FAILED", "A*", "AB", "COMPLETED", "*B", "A?", "??", "?*", "B", "é*", "C*D",
    "F*", "STOPPED",
)  # fmt: skip
CODES = ("A", "B", "AB", "AAB", "é", "éB", "FAILED", "COMPLETED", "STOPPED", "*")
SAMPLES = CODES + tuple(
    "".join(letters) for size in (1, 2, 3) for letters in product("ABéCDF", repeat=size)
)


def ambiguous(left: str, right: str) -> bool:
    """Tell whether compiling would refuse the two patterns in one node."""
    return rank(left) == rank(right) and any(
        fits(left, code) and fits(right, code) for code in SAMPLES
    )


def _sound(rules: Rules) -> dict[str, str]:
    kept: dict[str, str] = {}
    for pattern, target in rules.items():
        if not any(ambiguous(pattern, other) for other in kept):
            kept[pattern] = target
    return kept


@lru_cache
def _rules(
    later: tuple[str, ...], back: tuple[str, ...]
) -> st.SearchStrategy[dict[str, str]]:
    # Nodes more often than terminals, and mostly a way on: plans shall be deep.
    resumed = tuple(RESUME + node for node in (*later[:2], *back[-1:]))
    targets = st.sampled_from(TERMINALS + later * 2 + back[-2:] * 3 + resumed)
    rules = st.dictionaries(st.sampled_from(PATTERNS), targets, max_size=3)
    onward = later[:2] * 5 + back[-2:] * 4 + resumed[:1] * 2
    ways = st.sampled_from([*TERMINALS, None, *onward])
    return st.builds(_merged, rules, ways)


def _merged(rules: Rules, way: str | None) -> dict[str, str]:
    fallback = {} if way is None else {"*": way}
    return _sound({**rules, **fallback} or {"*": COMPLETE})


def _scripts(usual: Outcome, *odd: Outcome) -> st.SearchStrategy[tuple[Outcome, ...]]:
    outcomes = st.sampled_from([*[usual] * 4, *CODES, *odd])
    scripts = st.lists(outcomes, min_size=1, max_size=4)
    return scripts.map(lambda drawn: tuple(drawn))


def _with_success(rules: dict[str, str]) -> dict[str, str]:
    """A step with a rule for FAILED only is refused."""
    return rules if rules.keys() - {"FAILED"} else {**rules, "*": COMPLETE}


@lru_cache
def _specs(
    name: str,
    later: tuple[str, ...],
    back: tuple[str, ...],
    visits: int | None,
    depth: int,
) -> st.SearchStrategy[Spec]:
    steps = st.builds(
        StepSpec,
        id=st.just(name),
        rules=st.none() | _rules(later, back).map(_with_success),
        limit=st.sampled_from([None, None, 1, 2, 3]),
        again=st.sampled_from([False, False, True]),
        rich=st.booleans(),
        script=_scripts(Odd.NONE, *[Odd.RAISE] * 3),
        visits=st.just(visits),
    )
    decisions = st.builds(
        DecisionSpec,
        id=st.just(name),
        rules=_rules(later, back),
        script=_scripts("A", Odd.RAISE),
        visits=st.just(visits),
    )
    if not depth:
        return st.one_of(steps, steps, decisions)
    branches = f"{name}1", f"{name}2"
    splits = st.builds(
        SplitSpec,
        id=st.just(name),
        branches=st.one_of(
            st.tuples(*(_lines(one) for one in branches)),
            st.tuples(*(_flows(one, depth - 1) for one in branches)),
        ),
        rules=st.none() | _rules(later, back).map(_with_success),
        drains=st.booleans(),
        visits=st.just(visits),
    ).map(_resumable)
    return st.one_of(steps, steps, decisions, splits)


def _resumable(split: SplitSpec) -> SplitSpec:
    """Only a split of lines may resume elsewhere: others go there at once."""
    if split.rules is None or all(map(is_line, split.branches)):
        return split
    rules = {code: way.removeprefix(RESUME) for code, way in split.rules.items()}
    return evolve(split, rules=rules)


def _line(names: tuple[str, ...]) -> st.SearchStrategy[tuple[Spec, ...]]:
    return st.tuples(
        *(
            st.builds(
                StepSpec,
                id=st.just(name),
                limit=st.sampled_from([None, None, None, 2]),
                again=st.sampled_from([False, False, True]),
                rich=st.booleans(),
                script=_scripts(Odd.NONE, Odd.RAISE, "A"),
            )
            for name in names
        )
    )


@lru_cache
def _lines(prefix: str) -> st.SearchStrategy[tuple[Spec, ...]]:
    return st.one_of(_line((f"{prefix}a",)), _line((f"{prefix}a", f"{prefix}b")))


@lru_cache
def _flows(prefix: str, depth: int) -> st.SearchStrategy[tuple[Spec, ...]]:
    """Give the branches of a split: lines of steps among them."""
    letters = tuple(f"{prefix}{letter}" for letter in "abc")
    flows = [
        st.tuples(
            *(
                _specs(name, letters[at:size], (), None, depth)
                for at, name in enumerate(letters[:size], 1)
            )
        ).map(_reached)
        for size in (1, 2, 3)
    ]
    return st.one_of(_lines(prefix), *flows)


def _reached(nodes: tuple[Spec, ...]) -> tuple[Spec, ...]:
    """Leave out what no rule leads to."""
    names = [node.id for node in nodes]
    known: set[str] = set()
    more = {names[0]}
    while more - known:
        known |= more
        for node, following in zip(nodes, [*names[1:], None], strict=True):
            if node.id not in known:
                continue
            if node.rules is not None:
                more.update(one.removeprefix(RESUME) for one in node.rules.values())
            elif following is not None:
                more.add(following)
    return tuple(node for node in nodes if node.id in known)


@st.composite
def plans(draw: st.DrawFn) -> tuple[Spec, ...]:
    """Draw a plan in which every node is reached by some edge.

    Edges lead forward, or back to nodes whose visits are limited: so every way round is.
    In branches of splits they lead forward only.
    """
    names = tuple(ascii_lowercase[: draw(st.sampled_from(SIZES))])
    depths = [0] + [SPLITS_DEEP] * (len(names) - 1)  # a job begins with no split
    limits: list[int | None] = [None, None, None]
    limits += draw(st.sampled_from([[], [1, 2, 2, 3, 3, 3]]))
    nodes: list[Spec] = []
    back: tuple[str, ...] = ()
    for position, (name, depth) in enumerate(zip(names, depths, strict=True), 1):
        visits = draw(st.sampled_from(limits))
        back += () if visits is None else (name,)
        nodes.append(draw(_specs(name, names[position:], back, visits, depth)))
    return _reached(tuple(nodes))


def described(nodes: tuple[Spec, ...]) -> Iterator[str]:
    """Write a plan down, one node in a line."""
    yield from map(repr, nodes)


@define(eq=False)
class Script:
    """The user code of one instance: does what the plan says and notes its calls."""

    calls: list[str] = field(factory=list)
    _counts: dict[str, int] = field(factory=dict)

    def job(self, nodes: tuple[Spec, ...]) -> Job:
        """Make the job that the plan stands for."""
        return Job("drawn", [self._node(node) for node in nodes])

    def _node(self, node: Spec) -> Node:
        if isinstance(node, SplitSpec):
            return Split(
                node.id,
                [[self._node(one) for one in branch] for branch in node.branches],
                then=None if node.rules is None else _then(node.rules),
                on_failure="drain_siblings" if node.drains else "cancel_siblings",
                visit_limit=node.visits,
            )
        if isinstance(node, DecisionSpec):
            then = _then(node.rules)
            decider = self._decider(node)
            return Decision(node.id, decider, then=then, visit_limit=node.visits)
        return Step(
            node.id,
            self._tasklet(node),
            then=None if node.rules is None else _then(node.rules),
            start_limit=node.limit,
            allow_start_if_complete=node.again,
            listeners=[_AUDIT] if node.rich else [],
            visit_limit=node.visits,
        )

    def _next(self, node: StepSpec | DecisionSpec) -> Outcome:
        count = self._counts.get(node.id, 0)
        self._counts[node.id] = count + 1
        self.calls.append(node.id)
        return node.script[min(count, len(node.script) - 1)]

    def _tasklet(self, node: StepSpec) -> Callable[[StepContext], Exit | None]:
        def tasklet(ctx: StepContext) -> Exit | None:
            if node.rich:
                ctx.state["attempt"] = ctx.attempt
            outcome = self._next(node)
            if outcome is Odd.RAISE:
                raise ValueError("as the script says")
            return None if isinstance(outcome, Odd) else Exit(outcome)

        return tasklet

    def _decider(self, node: DecisionSpec) -> Callable[[DeciderContext], str]:
        def decider(ctx: DeciderContext) -> str:
            outcome = self._next(node)
            if isinstance(outcome, Odd):
                raise TypeError("as the script says")
            return outcome

        return decider


def _look(ctx: StepContext, *outcome: object) -> None:
    """Look at a step and change nothing."""


_AUDIT = StepListener("audit", before=_look, after=_look)


def _then(rules: Rules) -> Mapping[str, str | End]:
    return {pattern: _target(target) for pattern, target in rules.items()}


def _target(target: str) -> str | End:
    if target in TERMINALS:
        return Terminal[target]
    if target.startswith(RESUME):
        return Stop(resume_at=target.removeprefix(RESUME))
    return target
