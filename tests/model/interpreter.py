"""A naive interpreter of plans: says what every launch of one instance must do.

It shares no code with the product. Nodes are walked one by one, the past is kept in
plain dicts and lists, and user code is a script: what each invocation comes to.
"""

from collections.abc import Iterator, Mapping
from enum import Enum
from typing import TypeAlias

from attrs import define, field, frozen

COMPLETE, FAIL, STOP = "COMPLETE", "FAIL", "STOP"
TERMINALS = (COMPLETE, FAIL, STOP)
LAUNCHES_MAX = 4

Rules: TypeAlias = Mapping[str, str]
"""From an exit pattern to a node id or one of the TERMINALS."""


class Odd(Enum):
    """What user code does instead of giving an exit code."""

    NONE = "returns None"
    RAISE = "raises"

    def __repr__(self) -> str:
        return self.value


Outcome: TypeAlias = str | Odd


@frozen(kw_only=True)
class StepSpec:
    """A step: `rules` as in ``then``, None for the defaults."""

    id: str
    rules: Rules | None = field(default=None, hash=False)
    limit: int | None = None
    again: bool = False
    """Whether it runs again although it had completed."""
    rich: bool = False
    """Whether it has listeners and keeps a state, which must not change the way."""
    script: tuple[Outcome, ...] = (Odd.NONE,)
    """Of the first invocation, the second, ...; the last one repeats itself."""


@frozen(kw_only=True)
class DecisionSpec:
    """A decision."""

    id: str
    rules: Rules = field(hash=False)
    script: tuple[Outcome, ...]


@frozen(kw_only=True)
class SplitSpec:
    """A split, whose branches run one after the other; `rules` are its join's."""

    id: str
    branches: "tuple[tuple[Spec, ...], ...]"
    rules: Rules | None = field(default=None, hash=False)
    drains: bool = False

    @property
    def join(self) -> str:
        return f"{self.id}.join"


Spec: TypeAlias = StepSpec | DecisionSpec | SplitSpec


def is_line(branch: tuple[Spec, ...]) -> bool:
    """Tell whether a branch is steps only, without rules."""
    return all(isinstance(one, StepSpec) and one.rules is None for one in branch)


@frozen
class Launch:
    """What one launch does, in words that are easy to compare and to read."""

    end: str
    """Refused, or status, exit code and failure code."""
    calls: tuple[str, ...] = ()
    """User code in the order in which it was called."""
    steps: tuple[str, ...] = ()
    """What the launch came by, reused steps included."""
    decisions: tuple[str, ...] = ()
    starts: tuple[str, ...] = ()
    """How often every step was started in the instance so far."""


def fits(pattern: str, code: str) -> bool:
    """Tell whether a pattern takes a code."""
    if not pattern:
        return not code
    if pattern[0] == "*":
        return fits(pattern[1:], code) or (bool(code) and fits(pattern, code[1:]))
    return bool(code) and pattern[0] in ("?", code[0]) and fits(pattern[1:], code[1:])


def rank(pattern: str) -> tuple[int, int, int]:
    """Sort the more specific pattern first."""
    wildcards = pattern.count("*") + pattern.count("?")
    return -(len(pattern) - wildcards), wildcards, -len(pattern.encode())


def choose(rules: Rules, code: str) -> str | None:
    """Give the target of the most specific pattern that takes the code."""
    fitting = sorted((one for one in rules if fits(one, code)), key=rank)
    return rules[fitting[0]] if fitting else None


@frozen
class Row:
    """A step execution."""

    number: int
    status: str
    code: str
    cite: str | None
    """Names the decision that was made upon it."""


@frozen
class End:
    """What a node or a whole flow came to."""

    status: str
    code: str
    failure: str | None = None


BAD = ("COMPLETED", "STOPPED", "FAILED")
"""From good to bad."""
ENDS = {COMPLETE: "COMPLETED", FAIL: "FAILED", STOP: "STOPPED"}


@frozen
class Answer:
    """A decider's answer that was followed, or the result of a split."""

    node: str
    preceding: object
    code: str
    target: str
    cite: str


@define
class Interpreter:
    """One instance of a plan and what it has behind it."""

    nodes: tuple[Spec, ...]
    latest: dict[str, Row] = field(factory=dict)
    starts: dict[str, int] = field(factory=dict)
    invocations: dict[str, int] = field(factory=dict)
    answers: list[Answer] = field(factory=list)
    rows: int = 0
    attempt: int = 0
    # Of the launch under way.
    calls: list[str] = field(factory=list)
    steps: list[str] = field(factory=list)
    decisions: list[str] = field(factory=list)

    def history(self) -> Iterator[Launch]:
        """Launch until a launch is refused, but not too often."""
        end = ""
        for _ in range(LAUNCHES_MAX):
            if end == "COMPLETED/COMPLETED":
                yield Launch("refused: instance_complete")
                return
            launch = self.launch()
            end = launch.end
            yield launch

    def launch(self) -> Launch:
        """Launch once."""
        self.attempt += 1
        self.calls, self.steps, self.decisions = [], [], []
        _, end = self._flow(self.nodes, None, records=True)
        failure = f" ({end.failure})" if end.failure else ""
        return Launch(
            f"{end.status}/{end.status}{failure}",
            tuple(self.calls),
            tuple(self.steps),
            tuple(self.decisions),
            tuple(f"{node}: {count}" for node, count in sorted(self.starts.items())),
        )

    def _flow(
        self, nodes: tuple[Spec, ...], preceding: object, *, records: bool
    ) -> tuple[tuple[int, ...], End]:
        """Walk through a job or a branch; give the rows on the way and the end."""
        here = nodes[0].id
        rows: list[int] = []
        while True:
            node = next(one for one in nodes if one.id == here)
            rules = self._rules(node, nodes)
            if isinstance(node, StepSpec):
                row = self._step(node, rules if records else None)
                if row is None:
                    return tuple(rows), _failed("start_limit_reached")
                rows.append(row.number)
                preceding = row.number
                failure = "tasklet_failed" if row.status == "FAILED" else None
                came = End(row.status, row.code, failure)
                # Without rules it is the status that counts.
                target = choose(rules, row.code if records else row.status)
            elif isinstance(node, DecisionSpec):
                code, past = self._answer(node, preceding)
                if code is None:
                    return tuple(rows), _failed("decider_failed")
                came = End("COMPLETED", code)
                target = self._follow(rules, node.id, "DECIDER", code, preceding, past)
            else:
                inside, came, preceding = self._split(node, preceding)
                rows += inside
                if came.status == "STOPPED":
                    return tuple(rows), came
                kind, past = "SPLIT_AGGREGATE", self._known(node.join, preceding)
                target = self._follow(
                    rules, node.join, kind, came.code, preceding, past
                )
            if target is None:
                return tuple(rows), _failed("unmapped_exit")
            if target in TERMINALS:
                return tuple(rows), _ended(target, came)
            here = target

    def _step(self, node: StepSpec, rules: Rules | None) -> Row | None:
        """Reuse or run a step; None when it may not be started."""
        row = self.latest.get(node.id)
        if row is not None and row.status == "COMPLETED" and not node.again:
            self.steps.append(f"{node.id} {row.status}/{row.code} reused")
            target = None if rules is None else choose(rules, row.code)
            if target is not None:
                kind = "COMPLETED_STEP_REUSE"
                self._decide(node.id, kind, row.code, target, row.cite)
            return row
        if node.limit is not None and self._started(node.id) >= node.limit:
            return None
        return self._run(node, rules)

    def _split(
        self, node: SplitSpec, preceding: object
    ) -> tuple[list[int], End, object]:
        """Walk through all branches; give their rows, their result and its identity."""
        ends: list[End] = []
        every: list[tuple[int, ...]] = []
        for branch in node.branches:
            if not node.drains and any(end.status == "FAILED" for end in ends):
                every.append(())
                ends.append(End("STOPPED", "STOPPED"))
                continue
            records = not is_line(branch)
            rows, end = self._flow(branch, preceding, records=records)
            every.append(rows)
            ends.append(end)
        worst = max(ends, key=lambda end: BAD.index(end.status))
        seen = tuple(
            (end.status, end.code, rows) for end, rows in zip(ends, every, strict=True)
        )
        return [row for rows in every for row in rows], worst, seen

    def _started(self, node: str) -> int:
        return self.starts.get(node, 0)

    def _rules(self, node: Spec, nodes: tuple[Spec, ...]) -> Rules:
        if isinstance(node, DecisionSpec):
            return node.rules
        if node.rules is not None:
            return {"FAILED": FAIL, **node.rules}
        following = nodes[nodes.index(node) + 1 :]
        return {"FAILED": FAIL, "*": following[0].id if following else COMPLETE}

    def _call(self, node: StepSpec | DecisionSpec) -> Outcome:
        count = self.invocations.get(node.id, 0)
        self.invocations[node.id] = count + 1
        self.calls.append(node.id)
        return node.script[min(count, len(node.script) - 1)]

    def _run(self, step: StepSpec, rules: Rules | None) -> Row:
        self.starts[step.id] = self._started(step.id) + 1
        outcome = self._call(step)
        if outcome is Odd.RAISE:
            status, code = "FAILED", "FAILED"
        else:
            status = "COMPLETED"
            code = "COMPLETED" if isinstance(outcome, Odd) else outcome
        self.steps.append(f"{step.id} {status}/{code}")
        target = None if rules is None else choose(rules, code)
        cite = None
        if target is not None:
            cite = self._decide(step.id, "STEP_EXIT", code, target, None)
        self.rows += 1
        row = self.latest[step.id] = Row(self.rows, status, code, cite)
        return row

    def _known(self, node: str, preceding: object) -> Answer | None:
        for past in reversed(self.answers):
            same = past.node == node and past.preceding == preceding
            if same and past.target != STOP:
                return past
        return None

    def _answer(
        self, node: DecisionSpec, preceding: object
    ) -> tuple[str | None, Answer | None]:
        past = self._known(node.id, preceding)
        if past is not None:
            return past.code, past
        outcome = self._call(node)
        return (None if isinstance(outcome, Odd) else outcome), None

    def _follow(
        self,
        rules: Rules,
        node: str,
        kind: str,
        code: str,
        preceding: object,
        past: Answer | None,
    ) -> str | None:
        target = choose(rules, code)
        if target is not None:
            cited = None if past is None else past.cite
            cite = self._decide(node, kind, code, target, cited)
            self.answers.append(Answer(node, preceding, code, target, cite))
        return target

    def _decide(
        self, source: str, kind: str, code: str, target: str, cited: str | None
    ) -> str:
        again = f" as in {cited}" if cited else ""
        self.decisions.append(f"{source} {kind} {code} -> {target}{again}")
        return f"{self.attempt}.{len(self.decisions)}"


def _failed(failure: str) -> End:
    return End("FAILED", "FAILED", failure)


def _ended(terminal: str, came: End) -> End:
    """End a flow; its exit code is that of what led there, if that ended alike."""
    status = ENDS[terminal]
    code = came.code if came.status == status else status
    failure = came.failure or "fail_terminal" if terminal == FAIL else None
    return End(status, code, failure)
