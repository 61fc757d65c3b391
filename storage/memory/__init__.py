"""The memory backend: a verified fake of the durable ones, for tests."""

from .backend import MemoryBackend

__all__ = ["MemoryBackend"]
