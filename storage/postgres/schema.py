"""The schema's version in a database, its migrations, and what a role needs.

Migrations are numbered files, carried out under an advisory lock, each in a transaction
of its own with its number.
"""

from importlib.resources import files

from ..backend import Waits
from ..model.errors import SchemaMissing, SchemaTooNew, StoreUnusable, listed
from .wire import Wire

_MIGRATIONS = files("triolet.storage") / "migrations" / "postgres"
_LOCK = 7_480_113_065
"""Any number that no other program takes for its own advisory locks."""


def migrations() -> list[tuple[int, str]]:
    """Give the migrations in order: (version that the file leads to, its SQL)."""
    found = [file for file in _MIGRATIONS.iterdir() if file.name.endswith(".sql")]
    return sorted((int(file.name[:4]), file.read_text("utf-8")) for file in found)


NEWEST = max(version for version, _ in migrations())


def version_of(wire: Wire) -> Waits[int]:
    """Read the schema's version; 0 when our tables are not there.

    Raises:
        StoreUnusable: The role may not look; the missing privilege is named.
    """
    yield from _check_privileges(wire, _TO_LOOK)
    table = "SELECT to_regclass('triolet.schema_version')::text"
    (found,) = yield from wire.exchange([(table, ())])
    if found.rows[0][0] is None:
        return 0
    newest = "SELECT coalesce(max(version), 0) FROM triolet.schema_version"
    (found,) = yield from wire.exchange([(newest, ())])
    return int(found.rows[0][0])


def require(wire: Wire, *, read_only: bool) -> Waits[None]:
    """Refuse a schema that is not exactly ours, and a role that may not use it.

    Raises:
        SchemaTooNew: A newer release wrote the store.
        SchemaMissing: The store has no schema or an older one.
        StoreUnusable: The role lacks privileges; they are named.
    """
    found = yield from version_of(wire)
    _refuse_newer(found)
    if found < NEWEST:
        raise SchemaMissing(found, NEWEST)
    yield from _check_privileges(wire, _TO_READ if read_only else _TO_WORK)


def _refuse_newer(found: int) -> None:
    if found > NEWEST:
        raise SchemaTooNew(found, NEWEST)


_TO_LOOK = """
SELECT 'USAGE on schema triolet' FROM pg_namespace
WHERE nspname = 'triolet' AND NOT has_schema_privilege(oid, 'USAGE')
UNION ALL SELECT 'SELECT on triolet.schema_version' FROM pg_class
WHERE relname = 'schema_version'
    AND relnamespace = (SELECT oid FROM pg_namespace WHERE nspname = 'triolet')
    AND has_schema_privilege(relnamespace, 'USAGE')
    AND NOT has_table_privilege(oid, 'SELECT')
"""
_TO_CREATE = """
SELECT 'CREATE on database ' || current_database()
WHERE NOT has_database_privilege(current_database(), 'CREATE')
    AND NOT EXISTS (SELECT 1 FROM pg_namespace WHERE nspname = 'triolet')
"""
_TABLES = (
    "commit_marker decision definition execution instance launch_request "
    "operator_request owner partition "
    "recovery_decision step stop_request upgrade"
)
_TO_READ = f"""
SELECT 'SELECT on triolet.' || name FROM unnest(string_to_array('{_TABLES}', ' ')) AS name
WHERE NOT has_table_privilege('triolet.' || name, 'SELECT') ORDER BY 1
"""
_TO_WORK = f"""
SELECT privilege || ' on triolet.' || name
FROM unnest(string_to_array('{_TABLES}', ' ')) AS name,
    unnest(string_to_array('SELECT INSERT UPDATE', ' ')) AS privilege
WHERE NOT has_table_privilege('triolet.' || name, privilege)
UNION ALL SELECT 'DELETE on triolet.commit_marker'
WHERE NOT has_table_privilege('triolet.commit_marker', 'DELETE')
ORDER BY 1
"""


NAMED_MAX = 3
"""Of missing privileges."""


def _check_privileges(wire: Wire, query: str) -> Waits[None]:
    (role, missing) = yield from wire.exchange(
        [("SELECT current_user::text", ()), (query, ())]
    )
    if missing.rows:
        raise StoreUnusable(
            f"the PostgreSQL role {role.rows[0][0]!r} lacks "
            f"{_shortened([str(row[0]) for row in missing.rows])}: an owner of the "
            "schema can grant it, as docs/postgres.md tells"
        )


def _shortened(rights: list[str]) -> str:
    left = len(rights) - NAMED_MAX
    return listed(rights if left <= 0 else [*rights[:NAMED_MAX], f"{left} more"])


def migrate(wire: Wire) -> Waits[tuple[int, int]]:
    """Raise the schema to the newest version.

    An advisory lock serialises concurrent migrators; the loser finds nothing to do.

    Returns:
        The version before and the version after.

    Raises:
        SchemaTooNew: A newer release wrote the store; nothing is changed.
    """
    yield from wire.exchange(
        [("BEGIN", ()), (f"SELECT pg_advisory_xact_lock({_LOCK})", ())]
    )
    before = yield from version_of(wire)
    _refuse_newer(before)
    if before == 0:
        yield from _check_privileges(wire, _TO_CREATE)
        yield from wire.exchange(
            [
                ("CREATE SCHEMA IF NOT EXISTS triolet", ()),
                (
                    "CREATE TABLE IF NOT EXISTS triolet.schema_version "
                    "(version integer PRIMARY KEY, applied_at timestamptz NOT NULL)",
                    (),
                ),
            ]
        )
    for version, script in migrations():
        if version > before:
            yield from wire.script(script)
            record = "INSERT INTO triolet.schema_version VALUES ($1, clock_timestamp())"
            yield from wire.exchange([(record, (version,))])
    yield from wire.exchange([("COMMIT", ())])
    return before, NEWEST
