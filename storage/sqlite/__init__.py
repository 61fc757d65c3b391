"""The SQLite backend."""

from .backend import SqliteBackend

__all__ = ["SqliteBackend"]
