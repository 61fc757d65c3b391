"""Steps that are made anew by a function, and the check that they are as declared."""

from attrs import evolve, field, frozen

from ...storage.model.errors import InternalError
from .bindings import step_reasons
from .changes import node_changes
from .lowering import step_node
from .plan import ChunkDeclaration, DeliveryMode, JobDeclaration, StepNode
from .steps import Chunk, Function, Step, StepListener


@frozen
class Factory:
    """Makes the code of a step anew, so that launches do not share it.

    Args:
        make: A plain or async function. For a worker it is called with each
            `Partition`; else without arguments, once for each launch and before
            anything is written. It returns what could be bound itself: the step's work,
            or a ``Step`` of the declared name.
    """

    make: Function


@frozen
class _Unmade:
    """Stands in for a reader or writer that a factory will make."""

    delivery: DeliveryMode = field(default=DeliveryMode.AT_LEAST_ONCE)


def _unmade(ctx: object) -> None:
    raise InternalError("a step ran that its factory had not made")


def placeholder(node: StepNode) -> Step:
    """Give a step that has all that a plan says, and work that cannot be done."""
    declared = node.declaration
    if isinstance(declared, ChunkDeclaration):
        work: Chunk | Function = Chunk(
            _Unmade(),
            _Unmade(declared.delivery),
            size=declared.size,
            in_flight=declared.in_flight,
            reader_revision=declared.reader_revision,
            writer_revision=declared.writer_revision,
            processor_revision=declared.processor_revision,
            checkpoint_revision=declared.checkpoint_revision,
        )
        revision = "1"
    else:
        assert not isinstance(declared, JobDeclaration), "no factory makes jobs"
        work, revision = _unmade, declared.revision
    return Step(
        node.id,
        work,
        name=node.name,
        start_limit=node.start_limit,
        allow_start_if_complete=node.allow_start_if_complete,
        restartable=node.restartable,
        visit_limit=node.visit_limit,
        listeners=[StepListener("of the plan", revision=one) for one in node.listeners],
        revision=revision,
    )


def made_step(declared: Step, made: Step | Function | Chunk) -> Step:
    """Give the step of which a factory made the whole or only the work."""
    return made if isinstance(made, Step) else evolve(declared, work=made)


def reason_against(step: Step, node: StepNode) -> str | None:
    """Say why a step is not the declared one, or cannot be run; None when it can."""
    reason = next(step_reasons(step), None)
    return reason or next(node_changes(node, step_node(step)), None)
