"""From a definition to a plan and the code bound to it.

Compiling never stops at the first mistake: a wrong value is reported and replaced by
a harmless one, so that the checks behind it find what is theirs and nothing else.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence

from attrs import frozen

from ...storage.model.errors import DefinitionError, InvalidValue, Problem
from ...storage.model.execution import ExitCode, NodeTarget, Target, Terminal
from ...storage.model.names import NameKind
from ...storage.model.patterns import ANY_TEXT, matches
from .arguments import declaration_problems
from .bindings import decision_reasons, delivery_of, step_reasons
from .checks import name_reasons
from .definition import Chunk, Decision, InFlight, Job, Node, Parameter, Step
from .graph import Graph, problems_of
from .manifest import MANIFEST_BYTES_MAX, plan_of
from .plan import (
    UNLIMITED,
    ChunkDeclaration,
    DecisionNode,
    DeliveryMode,
    Plan,
    PlanNode,
    StepNode,
    TaskletDeclaration,
    Transition,
)

LABEL_DIGITS = 12


@frozen
class CompiledJob:
    """A job that is fit to run: its plan, and the user's code by node id."""

    job: str
    revision: str
    """The label of the definition, given or derived from the fingerprint."""
    plan: Plan
    steps: Mapping[str, Step]
    decisions: Mapping[str, Decision]
    parameters: tuple[Parameter, ...]

    @property
    def components(self) -> tuple[object, ...]:
        """The readers and writers, which serve one launch at a time."""
        chunks = (step.work for step in self.steps.values())
        return tuple(
            component
            for chunk in chunks
            if isinstance(chunk, Chunk)
            for component in (chunk.reader, chunk.writer)
        )


def compile_job(job: Job) -> CompiledJob:
    """Check a job and make its plan; nothing of the user's is called.

    Raises:
        InvalidValue: It is no ``Job``.
        DefinitionError: With everything that is wrong with the job, not only the
            first mistake.
    """
    given: object = job
    if not isinstance(given, Job):
        kind = type(given).__name__
        raise InvalidValue("the job", f"must be a Job, not {kind}")
    nodes = _keyed(job.steps)
    problems = list(_problems(job, nodes))
    if problems:
        raise DefinitionError(_shown(job.name), tuple(problems))
    plan = plan_of(job.name, _graph(nodes))
    size = len(plan.manifest.encode())
    if size > MANIFEST_BYTES_MAX:
        reason = f"its manifest has {size} bytes, at most {MANIFEST_BYTES_MAX} may be"
        raise DefinitionError(job.name, (Problem(None, reason),))
    return CompiledJob(
        job.name,
        job.revision or plan.fingerprint.hex()[:LABEL_DIGITS],
        plan,
        {key: node for key, node in nodes.items() if isinstance(node, Step)},
        {key: node for key, node in nodes.items() if isinstance(node, Decision)},
        job.parameters,
    )


def _keyed(steps: Sequence[object]) -> dict[str, Node]:
    """Give the nodes by id; one without an id of its own gets its position: ``#3``."""
    keyed: dict[str, Node] = {}
    for position, node in enumerate(steps, 1):
        if isinstance(node, (Step, Decision)):
            legal = not any(name_reasons(node.id, NameKind.NODE))
            key = node.id if legal and node.id not in keyed else f"#{position}"
            keyed[key] = node
    return keyed


def _shown(name: object) -> str:
    """A name that is refused may hold anything, so it is not shown."""
    legal = not any(name_reasons(name, NameKind.JOB))
    return name if legal and isinstance(name, str) else "?"


def _problems(job: Job, nodes: Mapping[str, Node]) -> Iterator[Problem]:
    for reason in name_reasons(job.name, NameKind.JOB):
        yield Problem(None, reason)
    if job.revision is not None:
        for reason in name_reasons(job.revision, NameKind.REVISION):
            yield Problem(None, reason)
    yield from declaration_problems(job.parameters)
    yield from _id_problems(job.steps)
    for key, node in nodes.items():
        for reason in _node_reasons(node):
            yield Problem(key, reason)
    if nodes:
        yield from problems_of(_graph(nodes))
    else:
        yield Problem(None, "it has no steps")


def _id_problems(steps: Sequence[object]) -> Iterator[Problem]:
    first: dict[str, int] = {}
    for position, node in enumerate(steps, 1):
        if not isinstance(node, (Step, Decision)):
            kind = type(node).__name__
            reason = f"node {position} must be a Step or a Decision, not {kind}"
            yield Problem(None, reason)
        elif reason := next(name_reasons(node.id, NameKind.NODE), ""):
            yield Problem(f"#{position}", reason)
        elif first.setdefault(node.id, position) != position:
            reason = f"is the id of two nodes, {first[node.id]} and {position}"
            yield Problem(node.id, reason)


def _node_reasons(node: Node) -> Iterator[str]:
    if isinstance(node, Step):
        yield from step_reasons(node)
        yield from _coverage_reasons(node)
    else:
        yield from decision_reasons(node)
    for pattern, target in (node.then or {}).items():
        yield from _rule_reasons(pattern, target)


def _rule_reasons(pattern: object, target: object) -> Iterator[str]:
    if not isinstance(pattern, str):
        yield f"a pattern of then must be text, not {type(pattern).__name__}"
    if not isinstance(target, str):
        kind = type(target).__name__
        yield (
            f"the target of {pattern!r} must be a node id, COMPLETE, FAIL or STOP, "
            f"not {kind}"
        )


def _coverage_reasons(step: Step) -> Iterator[str]:
    """Find exits without a target as far as the definition shows them."""
    if step.then is None:
        return
    patterns = _texts(step.then)
    settled = isinstance(step.work, Chunk) and not any(
        getattr(listener, "after", None) for listener in step.listeners
    )
    if all(one == ExitCode.FAILED for one in patterns):
        yield "success leads nowhere: then replaces the default, so it needs a '*'"
    elif settled and not any(matches(one, ExitCode.COMPLETED) for one in patterns):
        yield "a chunk ends with COMPLETED, which no pattern of then matches"


def _texts(words: Iterable[object]) -> list[str]:
    return [one for one in words if isinstance(one, str)]


def _graph(nodes: Mapping[str, Node]) -> Graph:
    keys = list(nodes)
    following: list[Target] = [NodeTarget(key) for key in keys[1:]]
    following.append(Terminal.COMPLETE)
    return Graph(
        keys[0],
        {key: _plan_node(key, node) for key, node in nodes.items()},
        {
            key: _transitions(nodes[key], default)
            for key, default in zip(keys, following, strict=True)
        },
    )


def _plan_node(key: str, node: Node) -> PlanNode:
    if isinstance(node, Decision):
        return DecisionNode(key, node.revision, node.input_version)
    return StepNode(
        key,
        key if node.name is None else node.name,
        _declaration(node),
        UNLIMITED if node.start_limit is None else node.start_limit,
        node.allow_start_if_complete,
        tuple(getattr(one, "revision", "1") for one in node.listeners),
    )


def _declaration(step: Step) -> TaskletDeclaration | ChunkDeclaration:
    chunk = step.work
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
    if isinstance(node, Step):
        rules[ExitCode.FAILED.value] = Terminal.FAIL
        if node.then is None:
            rules[ANY_TEXT] = following
    for pattern, target in (node.then or {}).items():
        rules[pattern] = _target(target)
    return tuple(Transition(pattern, rules[pattern]) for pattern in _texts(rules))


def _target(target: object) -> Target:
    if isinstance(target, Terminal):
        return target
    return NodeTarget(target) if isinstance(target, str) else Terminal.FAIL
