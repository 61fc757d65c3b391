"""The compiled plan: an immutable graph that the traversal follows.

A plan says what selects or interprets durable state, and nothing else: no functions,
no budgets. It is equal whether it was compiled or read from the store, but for what
the manifest of a job of one step does not hold.
"""

from collections.abc import Iterable, Iterator, Mapping
from enum import StrEnum
from typing import TypeAlias

from attrs import field, frozen

from ...storage.envelope import POSITION_SCHEMA, STATE_SCHEMA, Schema
from ...storage.model.execution import ExitCode, NodeTarget, Stop, Target, Terminal
from ...storage.model.patterns import Matcher, Specificity, is_literal, specificity
from .definition import STATUS_AND_COUNTS, FailurePolicy, InFlight

ONE_STEP = 1
"""The manifest format of a job of one step, which holds no graph."""
VISITS_MAX = 100_000
"""A restart comes by every visit again and has all their rows in memory, some 3 KB each."""
UNLIMITED = (1 << 32) - 1
"""The start limit of a step that may be started as often as needed."""


class DeliveryMode(StrEnum):
    """How often an item may reach the writer's resource; the spellings are stored."""

    ATOMIC = "atomic_same_resource"
    AT_LEAST_ONCE = "at_least_once"


@frozen
class TaskletDeclaration:
    """What the manifest keeps of a tasklet."""

    revision: str


@frozen(kw_only=True)
class ChunkDeclaration:
    """What the manifest keeps of a chunk."""

    size: int
    delivery: DeliveryMode
    in_flight: InFlight = InFlight.FINISH_CHUNK
    reader_revision: str
    processor_revision: str
    writer_revision: str
    checkpoint_revision: str
    checkpoint: Schema = POSITION_SCHEMA
    context: Schema = STATE_SCHEMA
    streams: tuple[tuple[str, str], ...] = ()
    """(identity, revision), sorted; read from stored manifests of format 1, which are
    the only ones that hold them. No component of this release declares any."""


@frozen
class JobDeclaration:
    """What the manifest keeps of a step that runs another job."""

    job: str
    fingerprint: bytes = field(repr=False)
    """Of the child's definition, so that a changed child is a changed parent."""
    revision: str
    """Of what makes the child's parameters."""
    exits: tuple[tuple[str, str], ...] = ()
    """The child's exit codes that are renamed, sorted."""


Declaration: TypeAlias = TaskletDeclaration | ChunkDeclaration | JobDeclaration


@frozen
class StepNode:
    """A node that works."""

    id: str
    name: str
    declaration: Declaration
    start_limit: int = UNLIMITED
    allow_start_if_complete: bool = False
    listeners: tuple[str, ...] = ()
    """Revisions, in the order of registration."""
    restartable: bool = True
    visit_limit: int | None = None


@frozen
class DecisionNode:
    """A node that chooses."""

    id: str
    revision: str
    input_version: int = 1
    visit_limit: int | None = None


@frozen
class SplitNode:
    """Branches that run side by side; the only way on is the join."""

    id: str
    branches: tuple["Branch", ...]
    """In the order of declaration, which decides between equally bad results."""
    join: str
    """Id of the join node."""
    failure_policy: FailurePolicy = FailurePolicy.CANCEL_SIBLINGS
    visit_limit: int | None = None


@frozen
class JoinNode:
    """Where the branches of one split meet; it routes by their aggregate."""

    id: str


@frozen(kw_only=True)
class PartitionedNode:
    """A step whose partitions are done by workers; it routes by their aggregate."""

    id: str
    step_name: str
    worker: StepNode
    partition_count: int | None
    """None: as many as the planner returns."""
    partitioner: str
    """Revision of the planner."""
    aggregation: str = STATUS_AND_COUNTS
    """Revision of the rule that makes one result of all."""
    failure_policy: FailurePolicy = FailurePolicy.CANCEL_SIBLINGS
    start_limit: int = UNLIMITED
    allow_start_if_complete: bool = False
    visit_limit: int | None = None


PlanNode: TypeAlias = StepNode | DecisionNode | SplitNode | JoinNode | PartitionedNode


def visit_limit_of(node: PlanNode) -> int | None:
    """Give how often an attempt may come to a node; a join is visited by its split."""
    return None if isinstance(node, JoinNode) else node.visit_limit


@frozen
class Graph:
    """Nodes and the transitions between them: a job, or a branch; maybe not sound."""

    entry: str
    nodes: Mapping[str, PlanNode] = field(hash=False)
    transitions: Mapping[str, tuple["Transition", ...]] = field(hash=False)


Branch: TypeAlias = tuple[StepNode, ...] | Graph
"""Steps one after the other, without rules and decision rows; or a flow with both."""


def nodes_of(branch: Branch) -> tuple[PlanNode, ...]:
    """Give the nodes of a branch, without those inside of them."""
    return tuple(branch.nodes.values()) if isinstance(branch, Graph) else branch


def nodes_inside(node: PlanNode) -> Iterator[PlanNode]:
    """Give all that stands in the branches of a split, and workers, at any depth."""
    match node:
        case SplitNode():
            for branch in node.branches:
                for inner in nodes_of(branch):
                    yield inner
                    yield from nodes_inside(inner)
        case PartitionedNode():
            yield node.worker


def graphs_in(graph: Graph) -> Iterator[Graph]:
    """Give a graph, then the branches in it that are graphs, at any depth."""
    yield graph
    for node in graph.nodes.values():
        if isinstance(node, SplitNode):
            for branch in node.branches:
                if isinstance(branch, Graph):
                    yield from graphs_in(branch)


def transitions_most(branch: Branch) -> int:
    """Count the transitions that a branch may write down: each node makes one."""
    if not isinstance(branch, Graph):
        return 0
    return sum(
        sum(map(transitions_most, node.branches)) if isinstance(node, SplitNode) else 1
        for node in branch.nodes.values()
    )


@frozen
class Transition:
    """One rule: exit codes that match the pattern lead to the target."""

    pattern: str
    target: Target
    matcher: Matcher = field(init=False, eq=False, repr=False)

    @matcher.default
    def _compiled(self) -> Matcher:
        return Matcher.of(self.pattern)


def resumed(target: Target) -> Target:
    """Give where an attempt goes that comes by a transition of an earlier one."""
    return NodeTarget(target.resume_at) if isinstance(target, Stop) else target


def in_evaluation_order(transitions: Iterable[Transition]) -> tuple[Transition, ...]:
    """Sort the transitions of one node; the first that matches a code is taken.

    More specific patterns come first, then by text; nodes come before terminals.
    """
    return tuple(sorted(transitions, key=_rank))


def _rank(one: Transition) -> tuple[Specificity, str, bool, str]:
    node = node_after(one.target)
    if node is not None:
        return specificity(one.pattern), one.pattern, False, node
    return specificity(one.pattern), one.pattern, True, str(one.target)


def target_text(target: Target) -> str:
    """Name a target to people."""
    match target:
        case NodeTarget(node):
            return node
        case Stop(node):
            return f"STOP, resume at {node}"
        case Terminal():
            return target.name


def node_after(target: Target) -> str | None:
    """Give the node that a target leads to, in this launch or in the next one."""
    match target:
        case NodeTarget(node) | Stop(node):
            return node
        case Terminal():
            return None


@frozen
class _Selector:
    """The transitions of one node, prepared for selection.

    A pattern without wildcards is more specific than any other that matches its text,
    so that looking those up first keeps the order of evaluation.
    """

    exact: Mapping[str, Target]
    others: tuple[Transition, ...]

    @classmethod
    def of(cls, transitions: tuple[Transition, ...]) -> "_Selector":
        exact = {
            one.pattern: one.target for one in transitions if is_literal(one.pattern)
        }
        others = tuple(one for one in transitions if not is_literal(one.pattern))
        # The codes that nearly every step ends with need no matching either.
        for code in (ExitCode.COMPLETED, ExitCode.FAILED):
            if (target := cls(exact, others).select(code)) is not None:
                exact.setdefault(code.value, target)
        return cls(exact, others)

    def select(self, code: str) -> Target | None:
        if (target := self.exact.get(code)) is not None:
            return target
        for one in self.others:
            if one.matcher.matches(code):
                return one.target
        return None


@frozen
class Plan:
    """The compiled graph of a job, with its canonical manifest."""

    job: str
    entry: str
    nodes: Mapping[str, PlanNode] = field(hash=False)
    transitions: Mapping[str, tuple[Transition, ...]] = field(hash=False)
    """By source, in the order of evaluation; every node but a split has some."""
    manifest: str = field(repr=False)
    """Canonical JSON; the fingerprint is the SHA-256 of its UTF-8 bytes."""
    fingerprint: bytes = field(repr=False)
    format: int
    embedded: Mapping[str, PlanNode] = field(init=False, eq=False, repr=False)
    """What stands inside splits and partitioned steps; their ids are their own."""
    every: Mapping[str, PlanNode] = field(init=False, eq=False, repr=False)
    """All nodes, at any depth."""
    rules: Mapping[str, tuple[Transition, ...]] = field(
        init=False, eq=False, repr=False
    )
    """The transitions of all nodes, at any depth."""
    _selectors: Mapping[str, _Selector] = field(init=False, eq=False, repr=False)

    @embedded.default
    def _embedded(self) -> Mapping[str, PlanNode]:
        return {
            one.id: one for node in self.nodes.values() for one in nodes_inside(node)
        }

    @every.default
    def _every(self) -> Mapping[str, PlanNode]:
        return {**self.nodes, **self.embedded}

    @rules.default
    def _rules(self) -> Mapping[str, tuple[Transition, ...]]:
        found: dict[str, tuple[Transition, ...]] = {}
        for one in graphs_in(Graph(self.entry, self.nodes, self.transitions)):
            found |= one.transitions
        return found

    @_selectors.default
    def _prepared(self) -> Mapping[str, _Selector]:
        return {
            source: _Selector.of(transitions)
            for source, transitions in self.rules.items()
        }

    @property
    def one_step(self) -> bool:
        """Whether it is the plan of a job of one step."""
        return self.format == ONE_STEP

    def select(self, node: str, code: str) -> Target | None:
        """Give where *code* leads from *node*; None when no pattern matches it."""
        return self._selectors[node].select(code)

    def patterns(self, node: str) -> tuple[str, ...]:
        """Give the exit patterns of *node* in the order of evaluation."""
        return tuple(one.pattern for one in self.rules[node])
