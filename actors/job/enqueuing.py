"""Asking for a launch that somebody else makes."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from attrs import evolve

from ...storage.commands.requesting import SECRET_REFUSED, RequestLaunch
from ...storage.enqueuing import insert_request
from ...storage.model.errors import InvalidParameter
from ..plan.arguments import resolve
from ..plan.compile import CompiledJob, compiled
from ..plan.definition import REQUIRED, Job
from .options import check_type

if TYPE_CHECKING:
    from sqlite3 import Connection as SqliteConnection

    from psycopg import Connection as PostgresConnection


def request_to_launch(
    job: CompiledJob, given: Mapping[str, object], *, anew: bool
) -> RequestLaunch:
    """Make the command that asks for a launch.

    A secret parameter that has a default is left out: the launch takes the default.

    Raises:
        InvalidParameter: A parameter is unknown, missing, of the wrong type, or secret.
        InvalidName: A parameter's name breaks the rules.
    """
    check_type(anew, bool, "anew")
    for one in job.parameters:
        if one.secret and one.default is REQUIRED:
            raise InvalidParameter(one.name, SECRET_REFUSED)
    every = resolve(job.parameters, given)
    kept = tuple(one for one in every if not one.secret or one.name in given)
    return RequestLaunch(
        job=job.plan.job, parameters=evolve(every, items=kept), anew=anew
    )


def enqueue(
    connection: "SqliteConnection | PostgresConnection[Any]",
    job: Job | CompiledJob,
    parameters: Mapping[str, object] | None = None,
    /,
    *,
    anew: bool = False,
    **named: object,
) -> int:
    """Ask for a launch within the caller's own transaction.

    The request becomes durable with whatever else the transaction writes, or not at all,
    and no job is launched for it before that. On a connection in autocommit mode that
    is at once.

    Args:
        connection: A connection of ``sqlite3`` to the store's file, or of psycopg to
            the store's database. It is neither committed nor closed.
        job: The definition; the request keeps its name and the parameters.
        parameters: Launch parameters; also the way to give one that is called ``anew``.
        anew: Make a new instance by the next run number instead of continuing.
        named: More launch parameters.

    Returns:
        The number of the request.

    Raises:
        DefinitionError: The definition has mistakes; all are listed.
        InvalidParameter: A parameter is unknown, missing, given twice, of the wrong
            type, or it is secret, and so the request cannot hold it.
        InvalidValue: The connection is of another kind.
        SchemaMissing: There is no store in this database, or an older one.
        sqlite3.Error, psycopg.Error: Whatever else the connection raises.
    """
    given = merged({} if parameters is None else parameters, named)
    command = request_to_launch(compiled(job), given, anew=anew)
    return insert_request(connection, command)


def merged(
    parameters: Mapping[str, object], named: Mapping[str, object]
) -> dict[str, object]:
    """Put the parameters together that are given in two ways.

    Raises:
        InvalidParameter: One is given twice.
        InvalidValue: *parameters* is no mapping.
    """
    check_type(parameters, Mapping, "parameters, which names the launch parameters,")
    twice = parameters.keys() & named.keys()
    if twice:
        raise InvalidParameter(min(twice), "is given twice")
    return {**parameters, **named}
