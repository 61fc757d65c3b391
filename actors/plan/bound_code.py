"""Code that is bound to the nodes of a plan: one binding for each, and of its kind."""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import TypeAlias

from ...storage.model.errors import InvalidValue, with_article
from .assembly_errors import (
    DuplicateBinding,
    MissingBinding,
    StepNameMismatch,
    WrongNodeKind,
)
from .definition import Chunk, Decision, Function, Step
from .job_steps import ChildJob
from .made import Factory
from .plan import (
    ChunkDeclaration,
    DecisionNode,
    JobDeclaration,
    PartitionedNode,
    Plan,
    PlanNode,
    StepNode,
)

Code: TypeAlias = Function | Chunk | Step | Decision | Factory
"""What is bound to a node: its function or chunk, with its settings or without."""


def code_by_node(
    plan: Plan, code: Mapping[str, Code] | Sequence[tuple[str, Code]]
) -> dict[str, Code]:
    """Check that every node has one binding of its kind.

    Raises:
        InvalidValue: The code is neither a mapping nor made of pairs.
        WrongNodeKind: Code is bound to no node, or to one of another kind.
        StepNameMismatch: A ``Step`` is not called as its node declares.
        DuplicateBinding: A node is bound twice.
        MissingBinding: A node has no code.
    """
    pairs, every = _pairs(code), plan.every
    for key, given in pairs:
        if not _fits(every.get(key), given):
            raise WrongNodeKind(key, _kind(every.get(key)), _described(given))
    for key, given in pairs:
        node = every[key]
        if isinstance(given, Step) and isinstance(node, StepNode):
            check_step_name(node.id, node.name, given)
    for key, times in Counter(key for key, _ in pairs).items():
        if times > 1:
            raise DuplicateBinding(key)
    bindings = dict(pairs)
    for key in sorted(every):
        if key not in bindings and _has_code(every[key]):
            raise MissingBinding(key, _kind(every[key]))
    return bindings


def _pairs(
    code: Mapping[str, Code] | Sequence[tuple[str, Code]],
) -> list[tuple[str, Code]]:
    try:
        pairs = code.items() if isinstance(code, Mapping) else code
        return [(key, given) for key, given in pairs]
    except (TypeError, ValueError):
        reason = "must be a dict from node ids to their code, or a list of such pairs"
        raise InvalidValue("the code", reason) from None


def check_step_name(node: str, declared: str, given: Step) -> None:
    """Refuse a step that is not called as its node declares.

    Raises:
        StepNameMismatch: It is not.
    """
    name = given.id if given.name is None else given.name
    if name != declared:
        raise StepNameMismatch(node, declared, name)


def _has_code(node: PlanNode) -> bool:
    return isinstance(node, StepNode | DecisionNode | PartitionedNode)


def _fits(node: PlanNode | None, given: object) -> bool:
    match node:
        case StepNode():
            return _fits_step(node, given)
        case DecisionNode():
            return isinstance(given, Decision) or callable(given)
        case PartitionedNode():
            return callable(given)
        case _:
            return False


def _fits_step(node: StepNode, given: object) -> bool:
    child = isinstance(node.declaration, JobDeclaration)
    if isinstance(given, Factory):
        return not child
    work = given.work if isinstance(given, Step) else given
    if child:
        return isinstance(given, Step) and isinstance(work, ChildJob)
    chunk = isinstance(node.declaration, ChunkDeclaration)
    return isinstance(work, Chunk) if chunk else callable(work)


def _kind(node: PlanNode | None) -> str:
    match node:
        case StepNode(declaration=ChunkDeclaration()):
            return "a chunk step"
        case StepNode(declaration=JobDeclaration()):
            return "a step that runs a job, which takes a JobStep"
        case StepNode():
            return "a tasklet step"
        case DecisionNode():
            return "a decision"
        case PartitionedNode():
            return "a partitioned step, which takes its planner"
        case None:
            return "no node of the plan"
        case _:
            return "a split or a join, which has no code"


def _described(given: object) -> str:
    if isinstance(given, Step) and isinstance(given.work, ChildJob):
        return "a JobStep"
    if isinstance(given, Step):
        chunk = isinstance(given.work, Chunk)
        return "a Step with a chunk" if chunk else "a Step with a tasklet"
    return with_article(type(given).__name__)
