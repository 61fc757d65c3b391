"""Asking a store without a runtime: nobody is owner, nothing runs here."""

from typing import TypeVar
from uuid import UUID, uuid4

from ...storage.backend import AnswerLost, Backend, run
from ...storage.commands import Operated, OperatorRequest, Question
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


def carry_out(url: str, request: OperatorRequest) -> Operated:
    """Have an operator's request carried out by the store that is there.

    When the answer is lost, the request is sent again: its operation id makes sure that
    it is done once.

    Raises:
        StoreError: There is no usable store at this URL.
        Rejection: The request was refused, which is on record.
    """
    for _ in range(ATTEMPTS):
        backend = open_store(url, StoreOptions(create=False))
        try:
            return run(backend, uuid4(), request)
        except AnswerLost:
            continue
        finally:
            backend.close()
    raise CommitOutcomeUnknown
