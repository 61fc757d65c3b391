"""Asking a store a question without a runtime: nothing is written, nobody is owner."""

from typing import TypeVar
from uuid import UUID

from ...storage.backend import run
from ...storage.commands import Question
from ...storage.stores import StoreOptions, open_store

R = TypeVar("R")


def ask(url: str, question: Question[R]) -> R:
    """Open the store that is there, put the question, and close it.

    Raises:
        StoreError: There is no usable store at this URL.
        Rejection: The question has no answer.
    """
    backend = open_store(url, StoreOptions(read_only=True))
    try:
        return run(backend, UUID(int=0), question)
    finally:
        backend.close()
