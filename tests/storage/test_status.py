"""Statuses: the properties and the transition matrix, as the specification has them."""

from itertools import product

import pytest

from tests.storage.matrix import MATRIX, ORDER, verdict
from triolet.storage.model.status import (
    TRANSITIONS,
    BatchStatus,
    FailureCategory,
    check_transition,
)

# Status: active, finished, restartable.
PROPERTIES = {
    "STARTING": (True, False, False),
    "STARTED": (True, False, False),
    "STOPPING": (True, False, False),
    "STOPPED": (False, True, True),
    "FAILED": (False, True, True),
    "COMPLETED": (False, True, False),
    "ABANDONED": (False, True, False),
    "UNKNOWN": (False, False, False),
}
CATEGORIES = [
    "INVALID_DEFINITION",
    "DUPLICATE_EXECUTION",
    "ILLEGAL_TRANSITION",
    "TRANSIENT_INFRASTRUCTURE",
    "PERMANENT_INFRASTRUCTURE",
    "USER_COMPONENT",
    "CANCELLED",
    "SERIALIZATION",
    "INVARIANT",
    "OPTIMISTIC_CONFLICT",
    "TIMEOUT",
    "UNSUPPORTED_CAPABILITY",
    "UNKNOWN_COMMIT",
    "SHUTDOWN_INCOMPLETE",
    "STALE_RECOVERED",
]


def test_the_spellings_are_durable() -> None:
    assert [status.value for status in BatchStatus] == list(PROPERTIES)
    assert [category.value for category in FailureCategory] == CATEGORIES


@pytest.mark.parametrize("status", BatchStatus)
def test_a_status_has_its_properties(status: BatchStatus) -> None:
    found = (status.active, status.finished, status.restartable)

    assert found == PROPERTIES[status.value]


def test_every_status_has_a_row_in_both_tables() -> None:
    assert set(TRANSITIONS) == set(MATRIX) == set(ORDER) == set(BatchStatus)


@pytest.mark.parametrize(("found", "wanted"), [*product(ORDER, ORDER)])
def test_a_transition_is_judged_by_the_matrix(
    found: BatchStatus, wanted: BatchStatus
) -> None:
    expected = verdict(found, wanted)

    if expected is None:
        check_transition(found, wanted)
        return
    with pytest.raises(type(expected)) as caught:
        check_transition(found, wanted)
    assert caught.value == expected
