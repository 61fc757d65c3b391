"""Asking a store without a runtime: nobody is owner, nothing runs here."""

from typing import TypeVar
from uuid import UUID, uuid4

from ...storage.backend import (
    AnswerLost,
    Backend,
    Committed,
    drive,
    reply_of,
    run,
)
from ...storage.commands import Command, Question
from ...storage.model.errors import CommitOutcomeUnknown
from ...storage.stores import StoreOptions, open_store

R = TypeVar("R")

ATTEMPTS = 3


def ask(url: str, question: Question[R]) -> R:
    """Open the store that is there, put the question, and close it.

    Raises:
        StoreError: There is no usable store at this URL.
        Rejection: The question has no answer.
    """
    backend = open_store(url, StoreOptions(read_only=True))
    try:
        return answered(backend, question)
    finally:
        backend.close()


def answered(backend: Backend, question: Question[R]) -> R:
    """Put one question to an open store.

    Raises:
        StoreError: The store failed.
        Rejection: The question has no answer.
    """
    return run(backend, UUID(int=0), question)


def carry_out(url: str, command: Command[R], *, create: bool = False) -> R:
    """Have one command carried out, exactly once, by the store that is there.

    Args:
        url: Of the store.
        command: What is to be done.
        create: Whether the store may be made when there is none.

    Raises:
        StoreError: There is no usable store at this URL.
        Rejection: The command was refused.
    """
    backend = open_store(url, StoreOptions(create=create))
    try:
        for _ in range(ATTEMPTS):
            batch_id = uuid4()
            try:
                return run(backend, batch_id, command)
            except AnswerLost:
                settled = drive(backend.settle(batch_id, [command]))
            if isinstance(settled, Committed):
                return reply_of(settled.replies[0], command)
        raise CommitOutcomeUnknown
    finally:
        backend.close()
