"""From a definition to a plan and the code bound to it.

Compiling never stops at the first mistake: a wrong value is reported and replaced by
a harmless one, so that the checks behind it find what is theirs and nothing else.
"""

from collections.abc import Iterator, Mapping
from functools import cached_property

from attrs import field, frozen

from ...storage.backend import Capability
from ...storage.model.errors import DefinitionError, InvalidValue, Problem
from ...storage.model.execution import ExitCode, Stop
from ...storage.model.names import NameKind
from ...storage.model.patterns import matches
from .arguments import declaration_problems
from .bindings import (
    decision_reasons,
    job_reasons,
    partitioned_reasons,
    split_reasons,
    step_reasons,
    worker_reasons,
)
from .checks import name_reasons, texts
from .children import child_problems
from .definition import (
    Chunk,
    Decision,
    Job,
    JobListener,
    Node,
    Parameter,
    PartitionedStep,
    Split,
    Step,
)
from .graph import problems_of
from .job_steps import ChildJob
from .lowering import graph_of, step_node
from .made import Factory
from .manifest import MANIFEST_BYTES_MAX, plan_of
from .naming import every_node, named_nodes, workers_in
from .one_step import has_one_step, one_step_problems
from .one_step_manifest import one_step_graph, one_step_plan
from .plan import ChunkDeclaration, DeliveryMode, Plan, StepNode

LABEL_DIGITS = 12


@frozen
class CompiledJob:
    """A job that is fit to run: its plan, and the user's code by node id."""

    job: str
    revision: str
    """The label of the definition, given or derived from the fingerprint."""
    plan: Plan
    steps: Mapping[str, Step]
    """The workers of partitioned steps, too; like all others at any depth."""
    decisions: Mapping[str, Decision]
    splits: Mapping[str, Split]
    partitioned: Mapping[str, PartitionedStep]
    parameters: tuple[Parameter, ...]
    listeners: tuple[JobListener, ...]
    restartable: bool
    timeout: float | None
    factories: Mapping[str, Factory] = field(factory=dict)
    """Of the steps that are made anew for each launch."""

    @cached_property
    def components(self) -> tuple[object, ...]:
        """The readers and writers, which serve one launch at a time.

        Those that a factory makes are not among them.
        """
        made = {
            node.worker.id
            for node in self.partitioned.values()
            if node.factory is not None and isinstance(node.worker, Step)
        }
        made |= self.factories.keys()
        chunks = (step.work for key, step in self.steps.items() if key not in made)
        own = [
            component
            for chunk in chunks
            if isinstance(chunk, Chunk)
            for component in (chunk.reader, chunk.writer)
        ]
        children = self.children.values()
        return (*own, *(part for child in children for part in child.components))

    @cached_property
    def capabilities(self) -> frozenset[Capability]:
        """What the job and those inside of it need a store to be able to do."""
        needed = {Capability.EXECUTION_OWNERSHIP}
        nodes = [*self.plan.nodes.values(), *self.plan.embedded.values()]
        declared = [one.declaration for one in nodes if isinstance(one, StepNode)]
        atomic = any(
            isinstance(one, ChunkDeclaration) and one.delivery is DeliveryMode.ATOMIC
            for one in declared
        )
        if atomic or any(step.write is not None for step in self.steps.values()):
            needed.add(Capability.ENLISTED_WRITES)
        inside = (child.capabilities for child in self.children.values())
        return frozenset(needed).union(*inside)

    @cached_property
    def connections(self) -> int:
        """How many connections the job and those inside of it ask a runtime to have."""
        declared = (
            *(split.pool_size for split in self.splits.values()),
            *(node.pool_size for node in self.partitioned.values()),
            *(child.connections for child in self.children.values()),
        )
        return max((one for one in declared if one is not None), default=1)

    @cached_property
    def children(self) -> dict[str, "CompiledJob"]:
        """The jobs that steps of this one run, by the step's id."""
        return {
            key: step.work.compiled
            for key, step in self.steps.items()
            if isinstance(step.work, ChildJob) and step.work.compiled is not None
        }


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
    nodes, misnamed = named_nodes(job.steps, compile_job)
    problems = list(_problems(job, nodes, misnamed))
    if problems:
        raise DefinitionError(_shown(job.name), tuple(problems))
    plan = _plan(job, nodes)
    size = len(plan.manifest.encode())
    if size > MANIFEST_BYTES_MAX:
        reason = f"its manifest has {size} bytes, at most {MANIFEST_BYTES_MAX} may be"
        raise DefinitionError(job.name, (Problem(None, reason),))
    return bound(job, plan, nodes)


def compiled(job: Job | CompiledJob) -> CompiledJob:
    """Give the compiled form of a job, which may have been compiled before.

    Raises:
        InvalidValue: It is no ``Job``.
        DefinitionError: The definition has mistakes; all are listed.
    """
    return job if isinstance(job, CompiledJob) else compile_job(job)


def _plan(job: Job, nodes: Mapping[str, Node]) -> Plan:
    if not has_one_step(job):
        return plan_of(job.name, graph_of(nodes))
    (step,) = (node for node in nodes.values() if isinstance(node, Step))
    return one_step_plan(job.name, one_step_graph(step_node(step)))


def bound(job: Job, plan: Plan, nodes: Mapping[str, Node]) -> CompiledJob:
    """Put a plan together with the code of its nodes, which has been checked."""
    every = {node.id: node for node in every_node(nodes.values())}
    steps = {key: node for key, node in every.items() if isinstance(node, Step)}
    return CompiledJob(
        job.name,
        job.revision or plan.fingerprint.hex()[:LABEL_DIGITS],
        plan,
        steps | {step.id: step for step in workers_in(every.values())},
        {key: node for key, node in every.items() if isinstance(node, Decision)},
        {key: node for key, node in every.items() if isinstance(node, Split)},
        {key: node for key, node in every.items() if isinstance(node, PartitionedStep)},
        job.parameters,
        job.listeners,
        job.restartable,
        job.timeout,
    )


def _shown(name: object) -> str:
    """A name that is refused may hold anything, so it is not shown."""
    legal = not any(name_reasons(name, NameKind.JOB))
    return name if legal and isinstance(name, str) else "?"


def settings_problems(job: Job) -> Iterator[Problem]:
    """Find what is wrong with a job, its nodes left out."""
    for reason in name_reasons(job.name, NameKind.JOB):
        yield Problem(None, reason)
    if job.revision is not None:
        for reason in name_reasons(job.revision, NameKind.REVISION):
            yield Problem(None, reason)
    yield from declaration_problems(job.parameters)
    for reason in job_reasons(job):
        yield Problem(None, reason)


def _problems(
    job: Job, nodes: Mapping[str, Node], misnamed: tuple[Problem, ...]
) -> Iterator[Problem]:
    yield from settings_problems(job)
    yield from one_step_problems(job, nodes)
    yield from misnamed
    for node in every_node(nodes.values()):
        for reason in _node_reasons(node):
            yield Problem(node.id, reason)
        for step in workers_in([node]):
            for reason in (*step_reasons(step), *worker_reasons(step)):
                yield Problem(step.id, reason)
    yield from child_problems(job, nodes)
    if nodes:
        yield from problems_of(graph_of(nodes))
    else:
        yield Problem(None, "it has no steps")


def _node_reasons(node: Node) -> Iterator[str]:
    match node:
        case Step():
            yield from step_reasons(node)
        case Decision():
            yield from decision_reasons(node)
        case Split():
            yield from split_reasons(node)
        case PartitionedStep():
            yield from partitioned_reasons(node)
    if not isinstance(node, Decision):
        yield from _coverage_reasons(node)
    for pattern, target in (node.then or {}).items():
        yield from _rule_reasons(pattern, target)


def _rule_reasons(pattern: object, target: object) -> Iterator[str]:
    if not isinstance(pattern, str):
        yield f"a pattern of then must be text, not {type(pattern).__name__}"
    wrong = target
    if isinstance(target, Stop):
        what, wrong = f"resume_at= of {pattern!r} must be a node id", target.resume_at
    else:
        what = f"the target of {pattern!r} must be a node id, COMPLETE, FAIL, STOP or a Stop"
    if not isinstance(wrong, str):
        yield f"{what}, not {type(wrong).__name__}"


def _coverage_reasons(node: Step | Split | PartitionedStep) -> Iterator[str]:
    """Find exits without a target as far as the definition shows them."""
    if node.then is None:
        return
    patterns = texts(node.then)
    if all(one == ExitCode.FAILED for one in patterns):
        yield "success leads nowhere: then replaces the default, so it needs a '*'"
    elif _always_completes(node) and not any(
        matches(one, ExitCode.COMPLETED) for one in patterns
    ):
        yield "a chunk ends with COMPLETED, which no pattern of then matches"


def _always_completes(node: Step | Split | PartitionedStep) -> bool:
    """Whether it is a chunk whose exit code no listener may turn."""
    return (
        isinstance(node, Step)
        and isinstance(node.work, Chunk)
        and not any(getattr(one, "after", None) for one in node.listeners)
    )
