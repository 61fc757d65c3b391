"""The operators' commands and their arguments."""

from collections.abc import Callable
from typing import Annotated

from cyclopts import Parameter

from .answers import Answer
from .failing import Form, guarded
from .words import (
    Actor,
    Debug,
    DryRun,
    Json,
    Number,
    OperationId,
    Reason,
    Store,
    Yes,
    url_of,
)


def stop(
    execution: Number,
    /,
    *,
    reason: Reason = None,
    wait: Annotated[bool, Parameter(negative="")] = False,
    actor: Actor = None,
    operation_id: OperationId = None,
    store: Store = None,
    json: Json = False,
    debug: Debug = False,
) -> int:
    """Ask for the stop of an execution, wherever it runs.

    Args:
        execution: Its number.
        reason: Why.
        wait: Wait until it has ended.
        actor: Who asks.
        operation_id: Of this request.
        store: The store.
        json: Print one JSON object.
        debug: Show the traceback of an error, too.
    """
    from . import operating

    asked = operating.Asked(actor=actor, reason=reason, operation_id=operation_id)
    return guarded(
        lambda: operating.stop(url_of(store), execution, asked, wait=wait),
        Form(command="stop", json=json, debug=debug),
    )


def restart(
    execution: Number,
    target: str,
    /,
    *parameters: str,
    store: Store = None,
    wait: bool = True,
    dry_run: DryRun = False,
    json: Json = False,
    debug: Debug = False,
) -> int:
    """Run a job again with the parameters of one of its executions.

    Args:
        execution: Its number.
        target: path.py:job or package.module:job.
        parameters: key=value for parameters that are not identifying, and for secret
            ones, which are not stored.
        store: The store.
        wait: Wait for the lease of an earlier owner of whom nothing is known.
        dry_run: Only tell what would run, be reused or be asked, and why.
        json: Print one JSON object.
        debug: Show the traceback of an error, too.
    """
    from .running import Mode, run_job

    mode = Mode(wait=wait, restart=execution)
    form = Form(command="restart", json=json, debug=debug)
    if dry_run:
        from .previewing import preview

        return guarded(lambda: preview(target, parameters, url_of(store), mode), form)
    return guarded(lambda: run_job(target, parameters, url_of(store), mode, form), form)


def abandon(
    execution: Number,
    /,
    *,
    reason: str,
    yes: Yes = False,
    actor: Actor = None,
    operation_id: OperationId = None,
    store: Store = None,
    json: Json = False,
    debug: Debug = False,
) -> int:
    """Close a stopped or failed execution for good: it is never continued.

    Args:
        execution: Its number.
        reason: Why.
        yes: Do not ask.
        actor: Who asks.
        operation_id: Of this request.
        store: The store.
        json: Print one JSON object.
        debug: Show the traceback of an error, too.
    """
    from . import operating

    asked = operating.Asked(actor=actor, reason=reason, operation_id=operation_id)
    return guarded(
        lambda: operating.abandon(url_of(store), execution, asked, yes=yes),
        Form(command="abandon", json=json, debug=debug),
    )


def recover(
    execution: Number,
    /,
    *,
    reason: str,
    mark_failed: Annotated[bool, Parameter(negative="")] = False,
    abandon: Annotated[bool, Parameter(negative="")] = False,
    yes: Yes = False,
    actor: Actor = None,
    operation_id: OperationId = None,
    store: Store = None,
    json: Json = False,
    debug: Debug = False,
) -> int:
    """Decide what an execution came to that is UNKNOWN, or whose owner is gone.

    Args:
        execution: Its number.
        reason: Why.
        mark_failed: It failed: a launch continues it, where the job allows that.
        abandon: It is never continued.
        yes: Do not ask.
        actor: Who decides.
        operation_id: Of this request.
        store: The store.
        json: Print one JSON object.
        debug: Show the traceback of an error, too.
    """
    from . import operating

    asked = operating.Asked(actor=actor, reason=reason, operation_id=operation_id)

    def carried_out() -> Answer:
        directive = operating.directive_of(mark_failed, abandon)
        return operating.recover(url_of(store), execution, directive, asked, yes=yes)

    return guarded(carried_out, Form(command="recover", json=json, debug=debug))


def doctor(
    *,
    settle: Annotated[bool, Parameter(negative="")] = False,
    yes: Yes = False,
    actor: Actor = None,
    reason: Reason = None,
    store: Store = None,
    json: Json = False,
    debug: Debug = False,
) -> int:
    """List executions that have not ended, why, and what mends them.

    Args:
        settle: Close what processes left that are known to have died; a launch then
            continues it, where the job allows that.
        yes: Do not ask.
        actor: Who settles.
        reason: Why.
        store: The store.
        json: Print one JSON object.
        debug: Show the traceback of an error, too.
    """
    from . import doctor as doctoring
    from .operating import Asked

    asked = Asked(actor=actor, reason=reason)

    def carried_out() -> Answer:
        if settle:
            return doctoring.settle(url_of(store), asked, yes=yes)
        return doctoring.diagnose(url_of(store))

    return guarded(carried_out, Form(command="doctor", json=json, debug=debug))


operators: dict[str, Callable[..., int]] = {
    "stop": stop,
    "restart": restart,
    "abandon": abandon,
    "recover": recover,
    "doctor": doctor,
}
"""By the name of the command."""
