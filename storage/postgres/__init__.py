"""The PostgreSQL store."""

from .backend import PostgresBackend, migrate_database, open_postgres
from .listening import PostgresListener

__all__ = ["PostgresBackend", "PostgresListener", "migrate_database", "open_postgres"]
