"""The PostgreSQL store."""

from .backend import PostgresBackend
from .listening import PostgresListener
from .opening import migrate_database, open_postgres

__all__ = ["PostgresBackend", "PostgresListener", "migrate_database", "open_postgres"]
