"""Assembly: binding code to a plan that exists already, such as a stored one.

Where `compile_job` makes the plan of what it is given, here the plan comes first and the
code has to fit: the result is launched like any other compiled job, under the very
definition that the plan was read from.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence

from attrs import evolve, frozen

from ...storage.model.errors import CorruptRecord, DefinitionError, InvalidValue
from .assembly_errors import ComponentMismatch, JobNameMismatch, ManifestUnsupported
from .bindings import decision_reasons, partitioned_reasons, split_reasons
from .bound_code import Code, code_by_node
from .changes import node_changes
from .children import child_problems
from .compile import CompiledJob, bound, compile_job, settings_problems
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
from .job_steps import ChildJob
from .made import Factory, placeholder, reason_against
from .manifest import read_manifest
from .plan import (
    DecisionNode,
    PartitionedNode,
    Plan,
    PlanNode,
    SplitNode,
    StepNode,
    nodes_of,
)

_SPLIT_BUDGET = 1
_PARTITION_BUDGET = 4


def assemble(
    job: str,
    plan: Plan | str,
    code: Mapping[str, Code] | Sequence[tuple[str, Code]],
    *,
    budgets: Mapping[str, int] | None = None,
    revision: str | None = None,
    parameters: Iterable[Parameter] = (),
    listeners: Iterable[JobListener] = (),
    restartable: bool = True,
    timeout: float | None = None,
) -> CompiledJob:
    """Bind code to the nodes of a plan; nothing of the user's is called.

    Every node that works or chooses is bound by its id, those inside of splits and
    partitioned steps too:

    * a step, to its work, a function or a ``Chunk``; to a ``Step``, which adds settings
      that the plan does not hold and must agree in all others; or to a `Factory`, which
      makes one of these for each launch (a worker's: for each partition). A step that
      runs a job is bound to a ``JobStep``;
    * a decision, to its decider or a ``Decision``;
    * a partitioned step, to its planner. Its worker has a binding of its own.

    Splits and joins have no code. Where a node leads is said by the plan: a ``then`` is
    not looked at.

    Args:
        job: Name of the job, which must be that of the plan.
        plan: The plan, or its manifest, see `Runtime.manifest`.
        code: By node id; a list of pairs of an id and its code serves as well.
        budgets: How many branches of a split (1), or workers of a partitioned step (4),
            run at the same time at most, by node id.
        revision: The label of the definition; None derives it from the fingerprint.
        parameters: As for a ``Job``.
        listeners: As for a ``Job``.
        restartable: As for a ``Job``.
        timeout: As for a ``Job``.

    Raises:
        ManifestUnsupported: It cannot be read, or describes a job of one step.
        JobNameMismatch: The plan is one of another job.
        WrongNodeKind: Code is bound to no node, or to one of another kind.
        StepNameMismatch: A ``Step`` is not called as its node declares.
        DuplicateBinding: A node is bound twice.
        MissingBinding: A node has no code.
        ComponentMismatch: Code is not what the plan declares, or a budget is out of
            its bounds.
        InvalidValue: A budget is one of another node, or an argument of another type.
        DefinitionError: The other arguments are wrong; all mistakes are listed.
    """
    known = _supported(job, plan)
    if job != known.job:
        raise JobNameMismatch(job, known.job)
    bindings = code_by_node(known, code)
    nodes = _Assembly(known, bindings, dict(budgets or {})).nodes()
    definition = Job(
        job,
        nodes.values(),
        revision=revision,
        parameters=parameters,
        listeners=listeners,
        restartable=restartable,
        timeout=timeout,
    )
    problems = (*settings_problems(definition), *child_problems(definition, nodes))
    if problems:
        raise DefinitionError(job, problems)
    workers = {
        node.worker.id
        for node in known.every.values()
        if isinstance(node, PartitionedNode)
    }
    factories = {
        key: given
        for key, given in bindings.items()
        if isinstance(given, Factory) and key not in workers
    }
    return evolve(bound(definition, known, nodes), factories=factories)


def _supported(job: str, plan: Plan | str) -> Plan:
    try:
        known = read_manifest(plan) if isinstance(plan, str) else plan
    except CorruptRecord as exc:
        raise ManifestUnsupported(job, exc.reason) from exc
    given: object = known
    if not isinstance(given, Plan):
        kind = type(given).__name__
        raise InvalidValue("the plan", f"must be a plan or its manifest, not {kind}")
    if known.one_step:
        reason = "it is that of a job of one step: launch a TaskletJob or a ChunkJob"
        raise ManifestUnsupported(job, reason)
    return known


def _refuse(node: str, reasons: Iterable[str]) -> None:
    for reason in reasons:
        raise ComponentMismatch(node, reason)


@frozen
class _Assembly:
    """Makes the nodes of a definition out of a plan and what is bound to it."""

    plan: Plan
    bindings: Mapping[str, Code]
    budgets: dict[str, int]

    def nodes(self) -> dict[str, Node]:
        nodes = {node.id: node for node in self._made(self.plan.nodes.values())}
        for key in self.budgets:
            if not isinstance(self.plan.every.get(key), SplitNode | PartitionedNode):
                reason = f"names {key!r}, which is no split and no partitioned step"
                raise InvalidValue("budgets=", reason)
        return nodes

    def _made(self, nodes: Iterable[PlanNode]) -> Iterator[Node]:
        for node in nodes:
            match node:
                case StepNode():
                    yield self._step(node)
                case DecisionNode():
                    yield self._decision(node)
                case SplitNode():
                    yield self._split(node)
                case PartitionedNode():
                    yield self._partitioned(node)

    def _step(self, node: StepNode) -> Step:
        given = self.bindings[node.id]
        if isinstance(given, Factory):
            return placeholder(node)
        if isinstance(given, Step):
            step = evolve(given, id=node.id, name=node.name, then=None)
            if isinstance(given.work, ChildJob):
                compiled = compile_job(given.work.job)
                work = evolve(given.work, compiled=compiled)
                # The plan has rules, whether exits are renamed or not.
                step = evolve(step, work=work, then={})
        else:
            assert not isinstance(given, Decision)
            step = evolve(placeholder(node), work=given, listeners=())
        reason = reason_against(step, node)
        if reason is not None:
            raise ComponentMismatch(node.id, reason)
        return step

    def _decision(self, node: DecisionNode) -> Decision:
        given = self.bindings[node.id]
        if isinstance(given, Decision):
            decision = evolve(given, id=node.id)
        else:
            assert not isinstance(given, Step | Chunk | Factory)
            decision = Decision(
                node.id,
                given,
                then={},
                revision=node.revision,
                input_version=node.input_version,
                visit_limit=node.visit_limit,
            )
        made = DecisionNode(
            node.id,
            decision.revision,
            decision.input_version,
            decision.visit_limit,
        )
        _refuse(node.id, (*decision_reasons(decision), *node_changes(node, made)))
        return decision

    def _split(self, node: SplitNode) -> Split:
        budget = self.budgets.get(node.id, _SPLIT_BUDGET)
        split = Split(
            node.id,
            [[*self._made(nodes_of(branch))] for branch in node.branches],
            join=node.join,
            max_parallel=budget,
            on_failure=node.failure_policy,
            visit_limit=node.visit_limit,
        )
        _refuse(node.id, split_reasons(split))
        return split

    def _partitioned(self, node: PartitionedNode) -> PartitionedStep:
        planner, worker = self.bindings[node.id], self.bindings[node.worker.id]
        assert not isinstance(planner, Step | Chunk | Decision | Factory)
        made = PartitionedStep(
            node.id,
            self._step(node.worker),
            planner,
            node.partition_count,
            name=node.step_name,
            max_workers=self.budgets.get(node.id, _PARTITION_BUDGET),
            on_failure=node.failure_policy,
            start_limit=node.start_limit,
            allow_start_if_complete=node.allow_start_if_complete,
            visit_limit=node.visit_limit,
            factory=worker.make if isinstance(worker, Factory) else None,
            planner_revision=node.partitioner,
            aggregation_revision=node.aggregation,
        )
        _refuse(node.id, partitioned_reasons(made))
        return made
