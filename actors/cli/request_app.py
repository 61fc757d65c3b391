"""The commands of launch requests and their arguments."""

from collections.abc import Callable
from typing import Annotated

from cyclopts import Parameter

from .failing import Form, guarded
from .words import WHOLE, Actor, Debug, Json, Number, Store, Yes, url_of


def enqueue(
    target: str,
    /,
    *parameters: str,
    new: Annotated[bool, Parameter(negative="")] = False,
    store: Store = None,
    json: Json = False,
    debug: Debug = False,
) -> int:
    """Ask for a launch by whoever serves the job.

    Args:
        target: path.py:job or package.module:job.
        parameters: key=value for each launch parameter.
        new: Run the job anew instead of continuing it.
        store: The store.
        json: Print one JSON object.
        debug: Show the traceback of an error, too.
    """
    from . import requesting

    return guarded(
        lambda: requesting.enqueue(target, parameters, url_of(store), anew=new),
        Form(command="enqueue", json=json, debug=debug),
    )


def withdraw(
    request: Number,
    /,
    *,
    reason: str,
    yes: Yes = False,
    actor: Actor = None,
    store: Store = None,
    json: Json = False,
    debug: Debug = False,
) -> int:
    """Take back a launch request that nobody works on: it is never launched.

    Args:
        request: Its number, as 'triolet requests' gives it.
        reason: Why.
        yes: Do not ask.
        actor: Who asks.
        store: The store.
        json: Print one JSON object.
        debug: Show the traceback of an error, too.
    """
    from . import requesting
    from .operating import Asked

    asked = Asked(actor=actor, reason=reason)
    return guarded(
        lambda: requesting.withdraw(url_of(store), request, asked, yes=yes),
        Form(command="withdraw", json=json, debug=debug),
    )


def requests(
    *,
    store: Store = None,
    job: str | None = None,
    status: str | None = None,
    limit: Number = 50,
    before: Annotated[int | None, WHOLE] = None,
    json: Json = False,
    debug: Debug = False,
) -> int:
    """List launch requests, newest first.

    Args:
        store: The store.
        job: Only of this job.
        status: Only with this status, REFUSED for one.
        limit: How many at most, 1 to 500.
        before: Only requests with a lower number, to go on with the next page.
        json: Print one JSON object.
        debug: Show the traceback of an error, too.
    """
    from . import requesting

    return guarded(
        lambda: requesting.list_requests(url_of(store), job, status, limit, before),
        Form(command="requests", json=json, debug=debug),
    )


def serve(
    target: str,
    /,
    *targets: str,
    max_running: Annotated[int, WHOLE, Parameter(name="--max")] = 4,
    once: Annotated[bool, Parameter(negative="")] = False,
    store: Store = None,
    json: Json = False,
    debug: Debug = False,
) -> int:
    """Launch what is requested, until Ctrl-C; any number of processes may serve.

    Args:
        target: path.py:job or package.module:job, a Job or a function that returns one.
        targets: More of them. A Job with readers or writers runs once at a time; jobs
            that a function makes run side by side.
        max_running: How many jobs run at the same time at most, 1 to 1000.
        once: End when nothing is requested any more.
        store: The store.
        json: Print one JSON object at the end, and nothing before.
        debug: Show the traceback of an error, too.
    """
    from . import serving

    form = Form(command="serve", json=json, debug=debug)
    service = serving.Service(max_running=max_running, once=once, form=form)
    return guarded(
        lambda: serving.serve([target, *targets], url_of(store), service), form
    )


requesters: dict[str, Callable[..., int]] = {
    "enqueue": enqueue,
    "withdraw": withdraw,
    "requests": requests,
    "serve": serve,
}
"""By the name of the command."""
