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


@frozen(kw_only=True)
class SplitSpec:
    """A split, whose branches run one after the other; `rules` are its join's.

    Nodes in branches have no limits of visits: they have the visit of the split.
    """

    id: str
    branches: "tuple[tuple[Spec, ...], ...]"
    rules: Rules | None = field(default=None, hash=False)
    drains: bool = False
    visits: int | None = None

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
class End:
    """What a node or a whole flow came to."""

    status: str
    code: str
    failure: str | None = None


BAD = ("COMPLETED", "STOPPED", "FAILED")
"""From good to bad."""
ENDS = {COMPLETE: "COMPLETED", FAIL: "FAILED", STOP: "STOPPED"}
Walk: TypeAlias = tuple[tuple[int, ...], End]
"""The rows on the way through a flow, and its end."""


@frozen
class Answer:
    """A decider's answer that was followed, or the result of a split."""

    node: Visit
    preceding: object
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
        _, end = self._flow(self.nodes, None, None)
        failure = f" ({end.failure})" if end.failure else ""
        return Launch(
            f"{end.status}/{end.status}{failure}",
            tuple(self.calls),
            tuple(self.steps),
            tuple(self.decisions),
            tuple(
                f"{named(*visit)}: {count}"
                for visit, count in sorted(self.starts.items())
            ),
        )

    def _flow(
        self, nodes: tuple[Spec, ...], preceding: object, inside: int | None
    ) -> Walk:
        """Walk through a job, or through a branch *inside* a visit of a split."""
        here = nodes[0].id
        records = inside is None or not is_line(nodes)
        rows: list[int] = []
        come_by: list[str] = []
        while True:
            node = next(one for one in nodes if one.id == here)
            come_by.append(here)
            visit = here, inside or come_by.count(here)
            if node.visits is not None and visit[1] > node.visits:
                return tuple(rows), _failed("visit_limit_reached")
            rules = self._rules(node, nodes)
            if isinstance(node, StepSpec):
                come = self._step(node, visit, rules, records=records)
                if come is None:
                    return tuple(rows), _failed("start_limit_reached")
                row, target = come
                rows.append(row.number)
                preceding = row.number
                failure = "tasklet_failed" if row.status == "FAILED" else None
                came = End(row.status, row.code, failure)
            elif isinstance(node, DecisionSpec):
                code, past = self._answer(node, visit, preceding)
                if code is None:
                    return tuple(rows), _failed("decider_failed")
                came = End("COMPLETED", code)
                target = self._follow(rules, visit, "DECIDER", code, preceding, past)
            else:
                join = node.join, visit[1]
                stop = self._resumed(join)
                walks = (
                    self._split(node, visit, preceding)
                    if stop is None
                    else [self._recalled(one, visit) for one in node.branches]
                )
                rows += [row for walk, _ in walks for row in walk]
                came = max((e for _, e in walks), key=lambda e: BAD.index(e.status))
                if came.status == "STOPPED" and stop is None:
                    return tuple(rows), came
                preceding = tuple((e.status, e.code, walk) for walk, e in walks)
                past = stop or self._known(join, preceding)
                code = came.code if stop is None else stop.code
                kind = "SPLIT_AGGREGATE"
                target = self._follow(rules, join, kind, code, preceding, past)
            if target is None:
                return tuple(rows), _failed("unmapped_exit")
            if target in TERMINALS or target.startswith(RESUME):
                return tuple(rows), _ended(target, came)
            here = target

    def _step(
        self, node: StepSpec, visit: Visit, rules: Rules, *, records: bool
    ) -> tuple[Row, str | None] | None:
        """Reuse or run a step; None when it may not be started."""
        row = self.latest.get(visit)
        done = row is not None and row.status == "COMPLETED" and not node.again
        if row is not None and (done or row.resumed):
            self.steps.append(f"{named(*visit)} {row.status}/{row.code} reused")
            if not records:
                return row, choose(rules, row.status)
            target = choose(rules, row.code)
            if target is not None:
                target = target.removeprefix(RESUME)
                kind = "COMPLETED_STEP_REUSE"
                self._decide(visit, kind, row.code, target, row.cite)
            return row, target
        if node.limit is not None and self._started(visit) >= node.limit:
            return None
        return self._run(node, visit, rules, records=records)

    def _split(self, node: SplitSpec, visit: Visit, preceding: object) -> list[Walk]:
        """Walk through all branches."""
        walks: list[Walk] = []
        for branch in node.branches:
            if not node.drains and any(end.status == "FAILED" for _, end in walks):
                walks.append(((), End("STOPPED", "STOPPED")))
            else:
                walks.append(self._flow(branch, preceding, visit[1]))
        return walks

    def _recalled(self, branch: tuple[Spec, ...], visit: Visit) -> Walk:
        """Give what a line of steps has come to, whether or not it would run again."""
        rows: list[int] = []
        end = End("COMPLETED", "COMPLETED")
        for step in branch:
            inner = step.id, visit[1]
            row = self.latest.get(inner)
            if row is None:
                return tuple(rows), End("STOPPED", "STOPPED")
            self.steps.append(f"{named(*inner)} {row.status}/{row.code} reused")
            rows.append(row.number)
            end = End(row.status, row.code)
            if row.status != "COMPLETED":
                break
        return tuple(rows), end

    def _started(self, visit: Visit) -> int:
        return self.starts.get(visit, 0)

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

    def _run(
        self, step: StepSpec, visit: Visit, rules: Rules, *, records: bool
    ) -> tuple[Row, str | None]:
        self.starts[visit] = self._started(visit) + 1
        outcome = self._call(step)
        if outcome is Odd.RAISE:
            status, code = "FAILED", "FAILED"
        else:
            status = "COMPLETED"
            code = "COMPLETED" if isinstance(outcome, Odd) else outcome
        self.steps.append(f"{named(*visit)} {status}/{code}")
        # In a line of steps it is the status that counts.
        target = choose(rules, code if records else status)
        cite = None
        if target is not None and records:
            cite = self._decide(visit, "STEP_EXIT", code, target, None)
        self.rows += 1
        row = self.latest[visit] = Row(self.rows, status, code, cite, target)
        return row, target

    def _known(self, node: Visit, preceding: object) -> Answer | None:
        for past in reversed(self.answers):
            same = past.node == node and past.preceding == preceding
            if same and past.target != STOP:
                return past
        return self._resumed(node)

    def _resumed(self, node: Visit) -> Answer | None:
        """Give the answer upon which the job stopped, to go on elsewhere."""
        for past in reversed(self.answers):
            if past.node == node and past.target.startswith(RESUME):
                return past
        return None

    def _answer(
        self, node: DecisionSpec, visit: Visit, preceding: object
    ) -> tuple[str | None, Answer | None]:
        past = self._known(visit, preceding)
        if past is not None:
            return past.code, past
        outcome = self._call(node)
        return (None if isinstance(outcome, Odd) else outcome), None

    def _follow(
        self,
        rules: Rules,
        node: Visit,
        kind: str,
        code: str,
        preceding: object,
        past: Answer | None,
    ) -> str | None:
        target = choose(rules, code)
        if target is not None:
            cited = None
            if past is not None:
                target, cited = target.removeprefix(RESUME), past.cite
            cite = self._decide(node, kind, code, target, cited)
            self.answers.append(Answer(node, preceding, code, target, cite))
        return target

    def _decide(
        self, source: Visit, kind: str, code: str, target: str, cited: str | None
    ) -> str:
        again = f" as in {cited}" if cited else ""
        self.decisions.append(f"{named(*source)} {kind} {code} -> {target}{again}")
        return f"{self.attempt}.{len(self.decisions)}"


def _failed(failure: str) -> End:
    return End("FAILED", "FAILED", failure)


def _ended(target: str, came: End) -> End:
    """End a flow; its exit code is that of what led there, if that ended alike."""
    status = ENDS.get(target, "STOPPED")
    code = came.code if came.status == status else status
    failure = came.failure or "fail_terminal" if target == FAIL else None
    return End(status, code, failure)
