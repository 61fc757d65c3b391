"""Stops that an operator asked for, and whose process died before it heeded them."""

import logging

from attrs import evolve

from ...storage.commands import Diagnose
from ...storage.model.errors import Rejection
from ...storage.model.operation import Directive
from ..kernel.liveness import is_alive
from ..kernel.storage_actor import StorageActor
from .operating import Words, recovery_of
from .proposing import Proposal, propose

log = logging.getLogger("triolet.serving")

REASON = "its process had died before the stop took effect"


async def close_stopped(
    store: StorageActor, owner_id: int, execution_id: int, request_id: int
) -> bool:
    """Close an execution that was to be stopped, as STOPPED, when its owner is dead.

    Args:
        store: Where it is.
        owner_id: Who asks. What it owns itself, nobody works on.
        execution_id: Of the execution.
        request_id: The launch request for which it began; the audit record names it.

    Returns:
        Whether it needs no more of us. Not as long as its owner may live and the
        lease has not run out.
    """
    for seen in (await store.ask(Diagnose(execution_id))).unresolved:
        proposal = propose(seen, is_alive(seen.owner))
        operation_id = f"serve-{request_id}-{execution_id}"
        words = Words(actor="serve", operation_id=operation_id, reason=REASON)
        command = recovery_of(seen, Directive.TAKE_OVER, words)
        if seen.execution.owner_id == owner_id:
            # The store failed while it was to be closed here.
            command = evolve(command, dead_owner=owner_id)
        elif proposal in (Proposal.LEAVE, Proposal.WAIT):
            return False
        try:
            await store.ask(command)
        except Rejection as exc:
            log.info("execution %d was not closed: %s", execution_id, exc)
            # Somebody else came first, or an operator has to decide.
            return proposal is Proposal.DECIDE
    return True
