"""The commands and their arguments; what a command does is in its own module."""

from importlib.metadata import version as installed_version
from typing import Annotated

from cyclopts import App, CycloptsError, Parameter

from .answers import Answer
from .exit_codes import OUTPUT_FAILED, USAGE
from .failing import Form, UsageInvalid, guarded, told
from .operator_app import operators
from .output import complain, given_up
from .request_app import requesters
from .words import WHOLE, Debug, DryRun, Json, Number, Store, Yes, url_of

app = App(
    name="triolet",
    help="Durable batch jobs: run them, kill them, run them again.",
    version=lambda: installed_version("triolet"),
    help_format="markdown",
    result_action="return_value",
)
for name, command in {**operators, **requesters}.items():
    app.command(command, name=name)


def carry_out(words: list[str]) -> int:
    """Carry out one command line and give the exit code."""
    try:
        code = app(words, exit_on_error=False, print_error=False)
    except CycloptsError as exc:
        return _misused(words, exc)
    except (OSError, SystemExit) as exc:
        # Help is printed by cyclopts through rich, which exits when a pipe is closed.
        broken = exc.__context__ if isinstance(exc, SystemExit) else exc
        if not isinstance(broken, OSError):
            raise
        complain(str(given_up(broken)))
        return OUTPUT_FAILED
    return code if isinstance(code, int) else 0


def _misused(words: list[str], exc: CycloptsError) -> int:
    sentence = " ".join(str(exc).split())
    if "--json" in words:
        form = Form(command=words[0] if words else "", json=True)
        return told(UsageInvalid(sentence), USAGE, sentence, form)
    complain(sentence)
    complain("see 'triolet --help'")
    return USAGE


@app.command
def run(
    target: str,
    /,
    *parameters: str,
    store: Store = None,
    new: Annotated[bool, Parameter(negative="")] = False,
    run: Annotated[int | None, WHOLE, Parameter(name="--run")] = None,
    wait: bool = True,
    dry_run: DryRun = False,
    json: Json = False,
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
        dry_run: Only tell what would run, be reused or be asked, and why.
        json: Print one JSON object.
        debug: Show the traceback of an error, too.
    """
    from .running import mode_of, run_job

    form = Form(command="run", json=json, debug=debug)

    def carried_out() -> Answer:
        mode = mode_of(anew=new, run=run, wait=wait)
        if dry_run:
            from .previewing import preview

            return preview(target, parameters, url_of(store), mode)
        return run_job(target, parameters, url_of(store), mode, form)

    return guarded(carried_out, form)


@app.command(name="list")
def list_(
    *,
    store: Store = None,
    job: str | None = None,
    status: str | None = None,
    limit: Number = 50,
    before: Annotated[int | None, WHOLE] = None,
    json: Json = False,
    debug: Debug = False,
) -> int:
    """List executions, newest first.

    Args:
        store: The store.
        job: Only of this job.
        status: Only with this status, COMPLETED for one.
        limit: How many at most, 1 to 500.
        before: Only executions with a lower number, to go on with the next page.
        json: Print one JSON object.
        debug: Show the traceback of an error, too.
    """
    from .listing import list_executions

    return guarded(
        lambda: list_executions(url_of(store), job, status, limit, before),
        Form(command="list", json=json, debug=debug),
    )


@app.command
def show(
    execution: Number,
    /,
    *,
    store: Store = None,
    json: Json = False,
    debug: Debug = False,
) -> int:
    """Show one execution: steps, counts, decisions, failures, what was reused.

    Args:
        execution: Its number, as 'triolet list' gives it.
        store: The store.
        json: Print one JSON object.
        debug: Show the traceback of an error, too.
    """
    from .showing import show_execution

    return guarded(
        lambda: show_execution(url_of(store), execution),
        Form(command="show", json=json, debug=debug),
    )


@app.command
def graph(
    target: str,
    /,
    *,
    execution: Annotated[int | None, WHOLE] = None,
    store: Store = None,
    json: Json = False,
    debug: Debug = False,
) -> int:
    """Draw a job as a Mermaid flowchart.

    Args:
        target: path.py:job or package.module:job.
        execution: Show how the nodes stand in this execution of the job.
        store: The store, where an execution is shown.
        json: Print one JSON object.
        debug: Show the traceback of an error, too.
    """
    from .graphing import graph as draw

    return guarded(
        lambda: draw(target, url_of(store), execution),
        Form(command="graph", json=json, debug=debug),
    )


@app.command
def migrate(*, store: Store = None, json: Json = False, debug: Debug = False) -> int:
    """Make the tables of a store, or raise them to this release's version.

    Args:
        store: The store.
        json: Print one JSON object.
        debug: Show the traceback of an error, too.
    """
    from .migrating import migrate as raise_schema

    return guarded(
        lambda: raise_schema(url_of(store)),
        Form(command="migrate", json=json, debug=debug),
    )


@app.command
def upgrade(
    target: str,
    /,
    *renamed: str,
    revision: Annotated[str, Parameter(name="--from")],
    yes: Yes = False,
    dry_run: DryRun = False,
    store: Store = None,
    json: Json = False,
    debug: Debug = False,
) -> int:
    """Let a changed job continue what it began under an earlier revision.

    Args:
        target: path.py:job or package.module:job, as it is now.
        renamed: OLD=NEW for each node that has another name now.
        revision: The earlier revision, as 'triolet show' gives it.
        yes: Do not ask, although something is left behind.
        dry_run: Only tell what would be continued, left behind or begun anew.
        store: The store.
        json: Print one JSON object.
        debug: Show the traceback of an error, too.
    """
    from .upgrading import upgrade as register

    return guarded(
        lambda: register(
            target, url_of(store), revision, renamed, yes=yes, dry_run=dry_run
        ),
        Form(command="upgrade", json=json, debug=debug),
    )


@app.command
def version(*, json: Json = False) -> int:
    """Print the version of this release.

    Args:
        json: Print one JSON object.
    """
    release = installed_version("triolet")
    answer = Answer({"version": release}, [release])
    return guarded(lambda: answer, Form(command="version", json=json))
