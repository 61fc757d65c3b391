"""What is proposed for an execution that has not ended."""

from typing import Any

import pytest
from attrs import evolve

from tests.storage.backends import Clock, open_backend
from tests.storage.client import FAILURE, Client, job_end, next_step, step_end
from triolet.actors.job.proposing import Proposal, propose
from triolet.storage.commands import Diagnose
from triolet.storage.model.status import BatchStatus


def seen(lease_left: int, step: BatchStatus | None = None) -> Any:
    clock = Clock()
    client = Client(open_backend("memory", clock), clock)
    opened = client.open(first=next_step())
    if step is not None:
        client.advance(opened, finish=step_end(1, status=step, failure=FAILURE))
    (one,) = client.ask(Diagnose()).unresolved
    return evolve(one, lease_left=lease_left)


@pytest.mark.parametrize(
    ("alive", "lease_left", "step", "proposal"),
    [
        (True, 5, None, Proposal.LEAVE),
        (None, 5, None, Proposal.WAIT),
        (True, 0, None, Proposal.LAUNCH),
        (None, 0, None, Proposal.LAUNCH),
        (False, 5, None, Proposal.TAKE_OVER),
        (False, 0, BatchStatus.UNKNOWN, Proposal.DECIDE),
        (None, 5, BatchStatus.UNKNOWN, Proposal.WAIT),
        (None, 0, BatchStatus.UNKNOWN, Proposal.DECIDE),
    ],
)
def test_what_is_proposed(
    alive: bool | None, lease_left: int, step: BatchStatus | None, proposal: Proposal
) -> None:
    assert propose(seen(lease_left, step), alive) is proposal


def test_what_is_unknown_has_to_be_decided() -> None:
    clock = Clock()
    client = Client(open_backend("memory", clock), clock)
    client.advance(client.open(), end=job_end(BatchStatus.UNKNOWN))
    (one,) = client.ask(Diagnose()).unresolved

    assert propose(one, True) is Proposal.DECIDE
