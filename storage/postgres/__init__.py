"""The PostgreSQL store."""

from .backend import PostgresBackend, migrate_database, open_postgres

__all__ = ["PostgresBackend", "migrate_database", "open_postgres"]
