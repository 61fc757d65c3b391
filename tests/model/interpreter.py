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
RESUME = ">"
"""Before a node id: the job stops, and the next launch goes on there."""
LAUNCHES_MAX = 4

Rules: TypeAlias = Mapping[str, str]
"""From an exit pattern to a node id, one of the TERMINALS, or RESUME and a node id."""


class Odd(Enum):
    """What user code does instead of giving an exit code."""

    NONE = "returns None"
    RAISE = "raises"

    def __repr__(self) -> str:
        return self.value


Outcome: TypeAlias = str | Odd
Visit: TypeAlias = tuple[str, int]
"""A node id, and how often the attempt has come to it."""


def named(node: str, visit: int) -> str:
    """Name a visit; the first one by its node alone."""
    return node if visit == 1 else f"{node}.{visit}"


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
    visits: int | None = None
    """How often an attempt may come to it."""


@frozen(kw_only=True)
class DecisionSpec:
    """A decision."""

    id: str
    rules: Rules = field(hash=False)
    script: tuple[Outcome, ...]
    visits: int | None = None


Spec: TypeAlias = StepSpec | DecisionSpec


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
    """How often every visit of a step was started in the instance so far."""


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
    target: str | None

    @property
    def resumed(self) -> bool:
        """Whether the job stopped upon it, to go on elsewhere."""
        return self.target is not None and self.target.startswith(RESUME)


@frozen
class Answer:
    """A decider's answer that was followed."""

    node: Visit
    preceding: int | None
    code: str
    target: str
    cite: str


@define
class Interpreter:
    """One instance of a plan and what it has behind it."""

    nodes: tuple[Spec, ...]
    latest: dict[Visit, Row] = field(factory=dict)
    starts: dict[Visit, int] = field(factory=dict)
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
        end = self._walk()
        return Launch(
            end,
            tuple(self.calls),
            tuple(self.steps),
            tuple(self.decisions),
            tuple(
                f"{named(*visit)}: {count}"
                for visit, count in sorted(self.starts.items())
            ),
        )

    def _walk(self) -> str:
        here = self.nodes[0].id
        preceding: Row | None = None
        come_by: list[str] = []
        while True:
            node = next(one for one in self.nodes if one.id == here)
            come_by.append(here)
            visit = here, come_by.count(here)
            if node.visits is not None and visit[1] > node.visits:
                return "FAILED/FAILED (visit_limit_reached)"
            if isinstance(node, StepSpec):
                row = self.latest.get(visit)
                done = row is not None and row.status == "COMPLETED" and not node.again
                if row is not None and (done or row.resumed):
                    target = self._reuse(node, visit, row)
                elif node.limit is not None and self._started(visit) >= node.limit:
                    return "FAILED/FAILED (start_limit_reached)"
                else:
                    row, target = self._run(node, visit)
                preceding = row
                failure = "tasklet_failed" if row.status == "FAILED" else None
            else:
                code, replayed = self._answer(node, visit, preceding)
                if code is None:
                    return "FAILED/FAILED (decider_failed)"
                target = self._follow(node, visit, code, preceding, replayed)
                failure = None
            if target is not None and target.startswith(RESUME):
                return "STOPPED/STOPPED"
            match target:
                case None:
                    return "FAILED/FAILED (unmapped_exit)"
                case "COMPLETE":
                    return "COMPLETED/COMPLETED"
                case "STOP":
                    return "STOPPED/STOPPED"
                case "FAIL":
                    return f"FAILED/FAILED ({failure or 'fail_terminal'})"
            here = target

    def _started(self, visit: Visit) -> int:
        return self.starts.get(visit, 0)

    def _rules(self, step: StepSpec) -> Rules:
        if step.rules is not None:
            return {"FAILED": FAIL, **step.rules}
        following = self.nodes[self.nodes.index(step) + 1 :]
        return {"FAILED": FAIL, "*": following[0].id if following else COMPLETE}

    def _call(self, node: Spec) -> Outcome:
        count = self.invocations.get(node.id, 0)
        self.invocations[node.id] = count + 1
        self.calls.append(node.id)
        return node.script[min(count, len(node.script) - 1)]

    def _run(self, step: StepSpec, visit: Visit) -> tuple[Row, str | None]:
        self.starts[visit] = self._started(visit) + 1
        outcome = self._call(step)
        if outcome is Odd.RAISE:
            status, code = "FAILED", "FAILED"
        else:
            status = "COMPLETED"
            code = "COMPLETED" if isinstance(outcome, Odd) else outcome
        self.steps.append(f"{named(*visit)} {status}/{code}")
        target = choose(self._rules(step), code)
        cite = None
        if target is not None:
            cite = self._decide(visit, "STEP_EXIT", code, target, None)
        self.rows += 1
        row = self.latest[visit] = Row(self.rows, status, code, cite, target)
        return row, target

    def _reuse(self, step: StepSpec, visit: Visit, row: Row) -> str | None:
        self.steps.append(f"{named(*visit)} {row.status}/{row.code} reused")
        target = choose(self._rules(step), row.code)
        if target is not None:
            target = target.removeprefix(RESUME)
            kind = "COMPLETED_STEP_REUSE"
            self._decide(visit, kind, row.code, target, row.cite)
        return target

    def _answer(
        self, node: DecisionSpec, visit: Visit, preceding: Row | None
    ) -> tuple[str | None, str | None]:
        number = None if preceding is None else preceding.number
        for past in reversed(self.answers):
            same = past.node == visit and past.preceding == number
            if same and past.target != STOP:
                return past.code, past.cite
        for past in reversed(self.answers):
            if past.node == visit and past.target.startswith(RESUME):
                return past.code, past.cite
        outcome = self._call(node)
        return (None if isinstance(outcome, Odd) else outcome), None

    def _follow(
        self,
        node: DecisionSpec,
        visit: Visit,
        code: str,
        preceding: Row | None,
        cited: str | None,
    ) -> str | None:
        target = choose(node.rules, code)
        if target is not None:
            if cited is not None:
                target = target.removeprefix(RESUME)
            cite = self._decide(visit, "DECIDER", code, target, cited)
            number = None if preceding is None else preceding.number
            self.answers.append(Answer(visit, number, code, target, cite))
        return target

    def _decide(
        self, source: Visit, kind: str, code: str, target: str, cited: str | None
    ) -> str:
        again = f" as in {cited}" if cited else ""
        self.decisions.append(f"{named(*source)} {kind} {code} -> {target}{again}")
        return f"{self.attempt}.{len(self.decisions)}"
