"""The SQLite backend."""

from .backend import SqliteBackend, migrate_file

__all__ = ["SqliteBackend", "migrate_file"]
