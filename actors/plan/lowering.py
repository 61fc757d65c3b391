"""From the nodes of a definition to the graph of its plan.

What is illegal is passed on for the checks of the graph to find, or replaced by
something harmless where a check of the definition has found it.
"""

from collections.abc import Mapping

from ...storage.model.execution import ExitCode, NodeTarget, Stop, Target, Terminal
from ...storage.model.patterns import ANY_TEXT
from .bindings import delivery_of
from .checks import texts
from .children import child_declaration
from .definition import (
    Chunk,
    Decision,
    FailurePolicy,
    InFlight,
    Node,
    PartitionedStep,
    Split,
    Step,
)
from .job_steps import ChildJob
from .plan import (
    UNLIMITED,
    Branch,
    ChunkDeclaration,
    DecisionNode,
    Declaration,
    DeliveryMode,
    Graph,
    JoinNode,
    PartitionedNode,
    PlanNode,
    SplitNode,
    StepNode,
    TaskletDeclaration,
    Transition,
)


def graph_of(nodes: Mapping[str, Node]) -> Graph:
    """Make the graph of nodes that have been named; there must be at least one."""
    keys = list(nodes)
    following: list[Target] = [NodeTarget(key) for key in keys[1:]]
    following.append(Terminal.COMPLETE)
    graph: dict[str, PlanNode] = {}
    transitions: dict[str, tuple[Transition, ...]] = {}
    for (key, node), default in zip(nodes.items(), following, strict=True):
        graph[key] = _plan_node(node)
        source = key
        if isinstance(node, Split):
            source = _join_of(node)
            graph[source] = JoinNode(source)
        transitions[source] = _transitions(node, default)
    return Graph(keys[0], graph, transitions)


def _plan_node(node: Node) -> PlanNode:
    match node:
        case Step():
            return step_node(node)
        case Decision():
            return DecisionNode(
                node.id, node.revision, node.input_version, node.visit_limit
            )
        case Split():
            return SplitNode(
                node.id,
                tuple(map(_branch, node.branches)),
                _join_of(node),
                _policy(node.on_failure),
                node.visit_limit,
            )
        case PartitionedStep():
            worker = node.worker
            assert isinstance(worker, Step), "the worker has not been named"
            return PartitionedNode(
                id=node.id,
                step_name=node.id if node.name is None else node.name,
                worker=step_node(worker),
                partition_count=node.partitions,
                partitioner=node.planner_revision,
                aggregation=node.aggregation_revision,
                failure_policy=_policy(node.on_failure),
                start_limit=_limit(node.start_limit),
                allow_start_if_complete=node.allow_start_if_complete,
                visit_limit=node.visit_limit,
            )


def _branch(nodes: tuple[Node, ...]) -> Branch:
    steps = [one for one in nodes if isinstance(one, Step) and one.then is None]
    if len(steps) == len(nodes):
        return tuple(map(step_node, steps))
    return graph_of({node.id: node for node in nodes})


def _join_of(split: Split) -> str:
    assert split.join is not None, "the split has not been named"
    return split.join


def _policy(word: FailurePolicy | str) -> FailurePolicy:
    return word if isinstance(word, FailurePolicy) else FailurePolicy.CANCEL_SIBLINGS


def _limit(given: int | None) -> int:
    return UNLIMITED if given is None else given


def step_node(step: Step) -> StepNode:
    """Give what the plan keeps of a step."""
    return StepNode(
        step.id,
        step.id if step.name is None else step.name,
        _declaration(step),
        _limit(step.start_limit),
        step.allow_start_if_complete,
        tuple(getattr(one, "revision", "1") for one in step.listeners),
        step.restartable,
        step.visit_limit,
    )


def _declaration(step: Step) -> Declaration:
    chunk = step.work
    if isinstance(chunk, ChildJob):
        return child_declaration(chunk, step.revision)
    if not isinstance(chunk, Chunk):
        return TaskletDeclaration(step.revision)
    return ChunkDeclaration(
        size=chunk.size,
        delivery=delivery_of(chunk.writer) or DeliveryMode.AT_LEAST_ONCE,
        in_flight=(
            chunk.in_flight
            if isinstance(chunk.in_flight, InFlight)
            else InFlight.FINISH_CHUNK
        ),
        reader_revision=chunk.reader_revision,
        processor_revision=chunk.processor_revision,
        writer_revision=chunk.writer_revision,
        checkpoint_revision=chunk.checkpoint_revision,
    )


def _transitions(node: Node, following: Target) -> tuple[Transition, ...]:
    rules: dict[str, Target] = {}
    if not isinstance(node, Decision):
        rules[ExitCode.FAILED.value] = Terminal.FAIL
        if node.then is None:
            rules[ANY_TEXT] = following
    for pattern, target in (node.then or {}).items():
        rules[pattern] = _target(target)
    return tuple(Transition(pattern, rules[pattern]) for pattern in texts(rules))


def _target(target: object) -> Target:
    match target:
        case Terminal() | Stop(resume_at=str()):
            return target
        case str():
            return NodeTarget(target)
        case _:
            return Terminal.FAIL
