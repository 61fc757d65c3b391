"""How failures of routing are told."""

import pytest

from triolet.actors.plan.failures import FlowFailures, StepNotRestartable
from triolet.storage.commands import StartLimitReached
from triolet.storage.model.partition import PartitionExecution
from triolet.storage.model.status import BatchStatus


@pytest.mark.parametrize(
    ("ordinal", "text"),
    [
        *[(1, "1st"), (2, "2nd"), (3, "3rd"), (4, "4th"), (11, "11th")],
        *[(12, "12th"), (21, "21st"), (113, "113th"), (1023, "1023rd")],
    ],
)
def test_a_partition_is_told_by_its_place_and_never_by_its_key(
    ordinal: int, text: str
) -> None:
    failures = FlowFailures(lambda: 1)
    one = PartitionExecution(
        manager_id=1, node="p", ordinal=ordinal, key="card 4711", context="{}"
    )
    for refusal in (
        StepNotRestartable("worker", BatchStatus.FAILED),
        StartLimitReached("worker", 1),
    ):
        found = failures.worker_not_started(refusal, "p", one)

        assert (found.where, found.code) == ("p", refusal.code)
        assert str(found.message).startswith(f"the {text} partition of step 'p' ")
        assert "4711" not in str(found)
