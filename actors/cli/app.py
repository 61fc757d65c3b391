"""The commands and their arguments; what a command does is in its own module."""

import os
import sys
from importlib.metadata import version as installed_version
from typing import Annotated

from cyclopts import App, CycloptsError, Parameter

from .answers import tell
from .exit_codes import DONE, OUTPUT_FAILED, USAGE
from .failing import guarded
from .output import complain, emit, given_up

DEFAULT_STORE = "sqlite:///triolet.db"

app = App(
    name="triolet",
    help="Durable batch jobs: run them, kill them, run them again.",
    version=lambda: installed_version("triolet"),
    help_format="plaintext",
    result_action="return_value",
)

Store = Annotated[
    str | None,
    Parameter(
        help="sqlite:///FILE, sqlite:////ABSOLUTE/FILE, postgresql://USER@HOST/DB "
        "or memory: (default: $TRIOLET_STORE, else sqlite:///triolet.db)"
    ),
]
Debug = Annotated[
    bool, Parameter(negative="", help="Show the traceback of an error, too.")
]


Reason = Annotated[str | None, Parameter(help="Why; it is kept on record.")]
Actor = Annotated[
    str | None, Parameter(help="Who asks (default: the user of the operating system).")
]
OperationId = Annotated[
    str | None,
    Parameter(help="What is sent twice under one id is done once (default: random)."),
]
Yes = Annotated[bool, Parameter(negative="", help="Do not ask for confirmation.")]


def carry_out(arguments: list[str] | None) -> int:
    """Carry out one command line and give the exit code."""
    words = sys.argv[1:] if arguments is None else arguments
    try:
        code = app(words, exit_on_error=False, print_error=False)
    except CycloptsError as exc:
        complain(" ".join(str(exc).split()))
        complain("see 'triolet --help'")
        return USAGE
    except (OSError, SystemExit) as exc:
        # Help is printed by cyclopts through rich, which exits when a pipe is closed.
        broken = exc.__context__ if isinstance(exc, SystemExit) else exc
        if not isinstance(broken, OSError):
            raise
        complain(str(given_up(broken)))
        return OUTPUT_FAILED
    return code if isinstance(code, int) else 0


@app.command
def run(
    target: str,
    /,
    *parameters: str,
    store: Store = None,
    new: Annotated[bool, Parameter(negative="")] = False,
    run: Annotated[int | None, Parameter(name="--run")] = None,
    wait: bool = True,
    debug: Debug = False,
) -> int:
    """Run a job, or continue it where its last attempt ended.

    Args:
        target: path.py:job or package.module:job, a Job or a function that returns one.
        parameters: key=value for each launch parameter; key:int=5 and key:bool=yes
            give a type where the job does not declare it.
        store: The store.
        new: Run the job anew instead of continuing it.
        run: Continue the run of that number, which was begun with --new.
        wait: Wait for the lease of an earlier owner of whom nothing is known.
        debug: Show the traceback of an error, too.
    """
    from .running import Mode, run_job

    mode = Mode(anew=new, run=run, wait=wait)
    return guarded(
        lambda: run_job(target, parameters, _url(store), mode, debug=debug),
        debug,
    )


@app.command(name="list")
def list_(
    *,
    store: Store = None,
    job: str | None = None,
    status: str | None = None,
    limit: int = 50,
    before: int | None = None,
    debug: Debug = False,
) -> int:
    """List executions, newest first.

    Args:
        store: The store.
        job: Only of this job.
        status: Only with this status, COMPLETED for one.
        limit: How many at most, 1 to 500.
        before: Only executions with a lower number, to go on with the next page.
        debug: Show the traceback of an error, too.
    """
    from .listing import list_executions

    return guarded(
        lambda: list_executions(_url(store), job, status, limit, before), debug
    )


@app.command
def show(execution: int, /, *, store: Store = None, debug: Debug = False) -> int:
    """Show one execution: steps, counts, decisions, failures, what was reused.

    Args:
        execution: Its number, as 'triolet list' gives it.
        store: The store.
        debug: Show the traceback of an error, too.
    """
    from .showing import show_execution

    return guarded(lambda: show_execution(_url(store), execution), debug)


@app.command
def stop(
    execution: int,
    /,
    *,
    reason: Reason = None,
    wait: Annotated[bool, Parameter(negative="")] = False,
    actor: Actor = None,
    operation_id: OperationId = None,
    store: Store = None,
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
        debug: Show the traceback of an error, too.
    """
    from . import operating

    asked = operating.Asked(actor=actor, reason=reason, operation_id=operation_id)
    return guarded(
        lambda: tell(operating.stop(_url(store), execution, asked, wait=wait)), debug
    )


@app.command
def restart(
    execution: int,
    target: str,
    /,
    *parameters: str,
    store: Store = None,
    wait: bool = True,
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
        debug: Show the traceback of an error, too.
    """
    from .running import Mode, run_job

    mode = Mode(wait=wait, restart=execution)
    return guarded(
        lambda: run_job(target, parameters, _url(store), mode, debug=debug), debug
    )


@app.command
def abandon(
    execution: int,
    /,
    *,
    reason: str,
    yes: Yes = False,
    actor: Actor = None,
    operation_id: OperationId = None,
    store: Store = None,
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
        debug: Show the traceback of an error, too.
    """
    from . import operating

    asked = operating.Asked(actor=actor, reason=reason, operation_id=operation_id)
    return guarded(
        lambda: tell(operating.abandon(_url(store), execution, asked, yes=yes)), debug
    )


@app.command
def recover(
    execution: int,
    /,
    *,
    reason: str,
    mark_failed: Annotated[bool, Parameter(negative="")] = False,
    abandon: Annotated[bool, Parameter(negative="")] = False,
    yes: Yes = False,
    actor: Actor = None,
    operation_id: OperationId = None,
    store: Store = None,
    debug: Debug = False,
) -> int:
    """Decide what an execution came to that is UNKNOWN, or whose owner is gone.

    Args:
        execution: Its number.
        reason: Why.
        mark_failed: It failed: the next launch continues it.
        abandon: It is never continued.
        yes: Do not ask.
        actor: Who decides.
        operation_id: Of this request.
        store: The store.
        debug: Show the traceback of an error, too.
    """
    from . import operating

    asked = operating.Asked(actor=actor, reason=reason, operation_id=operation_id)

    def carried_out() -> int:
        directive = operating.directive_of(mark_failed, abandon)
        url = _url(store)
        return tell(operating.recover(url, execution, directive, asked, yes=yes))

    return guarded(carried_out, debug)


@app.command
def doctor(
    *,
    settle: Annotated[bool, Parameter(negative="")] = False,
    yes: Yes = False,
    actor: Actor = None,
    reason: Reason = None,
    store: Store = None,
    debug: Debug = False,
) -> int:
    """List executions that have not ended, why, and what mends them.

    Args:
        settle: Close what processes left that are known to have died, so that the next
            launch continues it.
        yes: Do not ask.
        actor: Who settles.
        reason: Why.
        store: The store.
        debug: Show the traceback of an error, too.
    """
    from . import doctor as doctoring
    from .operating import Asked

    asked = Asked(actor=actor, reason=reason)

    def carried_out() -> int:
        if settle:
            return tell(doctoring.settle(_url(store), asked, yes=yes))
        return tell(doctoring.diagnose(_url(store)))

    return guarded(carried_out, debug)


@app.command
def migrate(*, store: Store = None, debug: Debug = False) -> int:
    """Make the tables of a store, or raise them to this release's version.

    Args:
        store: The store.
        debug: Show the traceback of an error, too.
    """
    from .migrating import migrate as raise_schema

    return guarded(lambda: raise_schema(_url(store)), debug)


@app.command
def upgrade(
    target: str,
    /,
    *renamed: str,
    revision: Annotated[str, Parameter(name="--from")],
    store: Store = None,
    debug: Debug = False,
) -> int:
    """Let a changed job continue what it began under an earlier revision.

    Args:
        target: path.py:job or package.module:job, as it is now.
        renamed: OLD=NEW for each node that has another name now.
        revision: The earlier revision, as 'triolet show' gives it.
        store: The store.
        debug: Show the traceback of an error, too.
    """
    from .upgrading import upgrade as register

    return guarded(lambda: register(target, _url(store), revision, renamed), debug)


@app.command
def version() -> int:
    """Print the version of this release."""
    return guarded(_print_version, False)


def _url(store: str | None) -> str:
    return store or os.environ.get("TRIOLET_STORE") or DEFAULT_STORE


def _print_version() -> int:
    emit([installed_version("triolet")])
    return DONE
