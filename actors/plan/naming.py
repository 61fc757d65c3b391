"""The ids of a definition: afterwards every node and every step inside has its own.

An id that is illegal or taken is reported and replaced by the node's place, ``#3`` or
``#3 (branch 1, step 2)``; what may not stand at a place is reported and replaced by a
step that does nothing.
"""

from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING

from attrs import define, evolve, field

from ...storage.model.errors import DefinitionError, InvalidValue, Problem, with_article
from ...storage.model.names import NameKind
from .checks import name_reasons
from .definition import Decision, Job, Node, PartitionedStep, Split, Step
from .job_steps import ChildJob
from .nesting import SPLITS_DEEP_MAX

if TYPE_CHECKING:
    from .compile import CompiledJob


def named_nodes(
    steps: Iterable[object], compile_child: "Callable[[Job], CompiledJob]"
) -> tuple[dict[str, Node], tuple[Problem, ...]]:
    """Give the nodes by id, joins and workers named, and what is wrong with their ids.

    What is no node is reported and left out. A node that is sound stays itself, unless
    a join or a worker in it got its default name, or it runs a job: that is compiled.

    Args:
        steps: As given.
        compile_child: Compiles the job of a step.
    """
    naming = _Naming(compile_child)
    nodes: dict[str, Node] = {}
    for position, given in enumerate(steps, 1):
        node = naming.node(given, str(position))
        if node is not None:
            nodes[node.id] = node
    return nodes, tuple(naming.problems)


def every_node(nodes: Iterable[Node]) -> Iterator[Node]:
    """Give nodes that have been named, and those in their branches, at any depth."""
    for node in nodes:
        yield node
        if isinstance(node, Split):
            for branch in node.branches:
                yield from every_node(branch)


def workers_in(nodes: Iterable[Node]) -> Iterator[Step]:
    """Give the workers of the partitioned steps among nodes that have been named."""
    for node in nodes:
        if isinstance(node, PartitionedStep) and isinstance(node.worker, Step):
            yield node.worker


def _nothing(ctx: object) -> None:
    """Stand in for work that cannot be had."""


@define
class _Naming:
    compile_child: "Callable[[Job], CompiledJob]"
    places: dict[str, str] = field(factory=dict)
    """Where each id stands."""
    problems: list[Problem] = field(factory=list)
    depth: int = 0
    """How many splits stand around."""

    def node(self, given: object, place: str) -> Node | None:
        match given:
            case Step():
                return self._step(given, place)
            case Decision():
                key = self._key(given.id, place)
                return given if key == given.id else evolve(given, id=key)
            case Split():
                return self._split(given, place)
            case PartitionedStep():
                return self._partitioned(given, place)
        words = "a Step, a Decision, a Split or a PartitionedStep"
        reason = f"node {place} must be {words}, not {type(given).__name__}"
        self.problems.append(Problem(None, reason))
        return None

    def _key(self, given: object, place: str) -> str:
        key = f"#{place}"
        if reason := next(name_reasons(given, NameKind.NODE), ""):
            self.problems.append(Problem(key, reason))
            return key
        text = str(given)
        first = self.places.setdefault(text, place)
        if first == place:
            return text
        reason = f"is the id of two nodes, {first} and {place}"
        self.problems.append(Problem(text, reason))
        return key

    def _step(self, step: Step, place: str) -> Step:
        key = self._key(step.id, place)
        if isinstance(step.work, ChildJob):
            step = evolve(step, work=self._compiled(step.work, key))
        return step if key == step.id else evolve(step, id=key)

    def _compiled(self, child: ChildJob, key: str) -> ChildJob:
        try:
            return evolve(child, compiled=self.compile_child(child.job))
        except DefinitionError as exc:
            for one in exc.problems:
                reason = f"its job {exc.job!r} has a mistake: {one}"
                self.problems.append(Problem(key, reason))
        except InvalidValue as exc:
            self.problems.append(Problem(key, f"its job {exc.reason}"))
        return child

    def _split(self, split: Split, place: str) -> Split:
        key = self._key(split.id, place)
        join = f"{key}.join" if split.join is None else split.join
        join = self._key(join, f"{place} (join)")
        self.depth += 1
        branches = [
            [
                self._inside(given, key, f"{place} (branch {branch}, step {at})")
                for at, given in enumerate(nodes, 1)
            ]
            for branch, nodes in enumerate(split.branches, 1)
        ]
        self.depth -= 1
        return evolve(split, id=key, join=join, branches=branches)

    def _inside(self, given: object, split: str, place: str) -> Node:
        node = None
        if isinstance(given, Split) and self.depth == SPLITS_DEEP_MAX:
            deep = f"at most {SPLITS_DEEP_MAX} deep"
            reason = f"holds a split, but splits may stand in each other {deep}"
            self.problems.append(Problem(split, reason))
        else:
            node = self.node(given, place)
        return Step(f"#{place}", _nothing) if node is None else node

    def _partitioned(self, node: PartitionedStep, place: str) -> PartitionedStep:
        key = self._key(node.id, place)
        where = f"{place} (worker)"
        given: object = node.worker
        if isinstance(given, (Decision, Split, PartitionedStep)):
            kind = with_article(type(given).__name__)
            reason = f"the worker must be a Step, not {kind}"
            self.problems.append(Problem(key, reason))
            step = Step(f"#{where}", _nothing)
        elif isinstance(node.worker, Step):
            step = self._step(node.worker, where)
        else:
            step = self._step(Step(f"{key}.worker", node.worker), where)
        return evolve(node, id=key, worker=step)
