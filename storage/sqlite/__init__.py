"""The SQLite backend."""

from .backend import SqliteBackend, migrate_file
from .reading import SqliteReader

__all__ = ["SqliteBackend", "SqliteReader", "migrate_file"]
