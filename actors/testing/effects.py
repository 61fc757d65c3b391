"""Business effects outside the store: what user code claims to do exactly once.

Rows that are written through the enlisted transaction are counted by themselves. What a
test's stand-in for the world does, such as a mailbox or a payment service, is not: it
says so here.
"""

from collections import Counter
from collections.abc import Hashable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TypeAlias

Effects: TypeAlias = Mapping[tuple[Hashable, ...], int]
"""How often each one took place."""

_noted: ContextVar[Counter[tuple[Hashable, ...]] | None] = ContextVar(
    "_noted", default=None
)


def business_effect(*what: Hashable) -> None:
    """Note that something took place that must take place exactly once.

    A disturbed run has to come to the same effects, each as often, as the undisturbed
    one. Call it in a stand-in for what the job acts on, behind whatever makes a repeated
    call harmless there, such as a look at ``ctx.idempotency_key``. Outside a scenario it
    does nothing.

    Args:
        what: Says what took place, the same in every run.
    """
    noted = _noted.get()
    if noted is not None:
        noted[what] += 1


@contextmanager
def noting() -> Iterator[Effects]:
    """Collect the effects of one run."""
    noted: Counter[tuple[Hashable, ...]] = Counter()
    token = _noted.set(noted)
    try:
        yield noted
    finally:
        _noted.reset(token)
