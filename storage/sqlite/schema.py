"""The schema's version in a file, and the numbered migrations that raise it."""

import sqlite3
from importlib.resources import files

from ..model.errors import SchemaMissing, SchemaTooNew

_MIGRATIONS = files("triolet.storage") / "migrations" / "sqlite"


def migrations() -> list[tuple[int, str]]:
    """Give the migrations in order: (version that the file leads to, its SQL)."""
    found = [file for file in _MIGRATIONS.iterdir() if file.name.endswith(".sql")]
    return sorted((int(file.name[:4]), file.read_text("utf-8")) for file in found)


NEWEST = max(version for version, _ in migrations())


def version_of(connection: sqlite3.Connection) -> int:
    """Read the schema's version; 0 when our tables are not there."""
    table = "SELECT 1 FROM sqlite_schema WHERE name = 'triolet_schema'"
    if connection.execute(table).fetchone() is None:
        return 0
    row = connection.execute("SELECT max(version) FROM triolet_schema").fetchone()
    return int(row[0] or 0)


def require(connection: sqlite3.Connection) -> None:
    """Refuse a schema that is not exactly ours.

    Raises:
        SchemaTooNew: A newer release wrote the store.
        SchemaMissing: The store has no schema or an older one.
    """
    found = version_of(connection)
    _refuse_newer(found)
    if found < NEWEST:
        raise SchemaMissing(found, NEWEST)


def _refuse_newer(found: int) -> None:
    if found > NEWEST:
        raise SchemaTooNew(found, NEWEST)


def migrate(connection: sqlite3.Connection, now: int) -> tuple[int, int]:
    """Raise the schema to the newest version, in one transaction.

    The write lock serialises concurrent migrators; the loser finds nothing to do.

    Returns:
        The version before and the version after.

    Raises:
        SchemaTooNew: A newer release wrote the store; nothing is changed.
    """
    connection.execute("BEGIN IMMEDIATE")
    try:
        before = version_of(connection)
        _refuse_newer(before)
        if before == 0:
            connection.execute(
                "CREATE TABLE triolet_schema (version INTEGER PRIMARY KEY, "
                "applied_at INTEGER NOT NULL) STRICT"
            )
        for version, script in migrations():
            if version > before:
                for statement in statements(script):
                    connection.execute(statement)
                connection.execute(
                    "INSERT INTO triolet_schema VALUES (?, ?)", (version, now)
                )
        connection.execute("COMMIT")
    except BaseException:
        connection.execute("ROLLBACK")
        raise
    return before, NEWEST


def statements(script: str) -> list[str]:
    """Split a migration, which holds no semicolon inside a statement."""
    return [part.strip() for part in script.split(";") if part.strip()]
