"""Aggregates: the worst status wins, and the order of completion never matters."""

from itertools import permutations
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.strategies import counts, failures, texts
from triolet.actors.plan.aggregation import (
    Aggregate,
    BranchResult,
    PartitionResult,
    Severity,
    aggregate_branches,
    aggregate_partitions,
)
from triolet.storage.model.errors import InvalidValue
from triolet.storage.model.execution import COUNT_MAX, NO_COUNTS, Counts
from triolet.storage.model.status import BatchStatus

COMPLETED, STOPPED = BatchStatus.COMPLETED, BatchStatus.STOPPED
FAILED, UNKNOWN = BatchStatus.FAILED, BatchStatus.UNKNOWN
STARTING = BatchStatus.STARTING
OVER = [COMPLETED, STOPPED, FAILED, UNKNOWN]

codes = st.sampled_from(["COMPLETED", "FAILED", "PART", "GOOD", "STOPPED"])
branches = st.lists(
    st.builds(BranchResult, st.sampled_from(OVER), codes, st.none() | failures),
    min_size=2,
    max_size=8,
)
partitions = st.lists(
    st.builds(
        PartitionResult,
        texts.filter(bool),
        st.sampled_from([*OVER, STARTING]),
        codes,
        counts,
        st.none() | failures,
    ),
    min_size=1,
    max_size=8,
    unique_by=lambda one: one.key,
)


def branch(status: BatchStatus, code: str = "") -> BranchResult:
    return BranchResult(status, code or status.value)


def partition(key: str, status: BatchStatus, code: str = "") -> PartitionResult:
    return PartitionResult(key, status, code or status.value, Counts(read=1))


def test_unknown_is_worse_than_failed_and_failed_than_stopped() -> None:
    assert sorted(OVER, key=Severity.of) == OVER
    for one, other in permutations(OVER, 2):
        worse = max(one, other, key=OVER.index)
        assert aggregate_branches([branch(one), branch(other)]).status is worse


@pytest.mark.parametrize("status", sorted(set(BatchStatus) - set(OVER)))
def test_what_is_not_over_has_no_place(status: BatchStatus) -> None:
    with pytest.raises(InvalidValue, match=f"no place for what is {status}"):
        aggregate_branches([branch(COMPLETED), branch(status)])
    if status is not STARTING:
        with pytest.raises(InvalidValue):
            aggregate_partitions([partition("a", status)])


def test_nothing_has_no_aggregate() -> None:
    with pytest.raises(InvalidValue):
        aggregate_branches([])
    with pytest.raises(InvalidValue):
        aggregate_partitions([])


def test_the_first_branch_in_declared_order_gives_the_exit_code() -> None:
    results = [branch(COMPLETED, "X"), branch(FAILED, "A"), branch(FAILED, "B")]
    assert aggregate_branches(results) == Aggregate(FAILED, "A")
    assert aggregate_branches(results[::-1]) == Aggregate(FAILED, "B")


def test_the_first_partition_by_key_gives_the_exit_code() -> None:
    results = [partition("b", COMPLETED, "B"), partition("a", COMPLETED, "A")]
    assert aggregate_partitions(results).exit_code == "A"
    # U+FFFF comes before U+10000 in UTF-8, though not in UTF-16.
    results = [partition("\U00010000", FAILED, "B"), partition("\uffff", FAILED, "A")]
    assert aggregate_partitions(results).exit_code == "A"


def test_a_partition_that_was_never_begun_counts_as_stopped() -> None:
    begun = PartitionResult("b", COMPLETED, "COMPLETED", Counts(read=1))
    waiting = PartitionResult("a", STARTING, "UNKNOWN", Counts(read=7))
    stopped = Aggregate(STOPPED, "STOPPED", None, Counts(read=1))
    assert aggregate_partitions([begun, waiting]) == stopped
    failed = partition("c", FAILED)
    assert aggregate_partitions([failed, waiting, begun]).status is FAILED
    assert aggregate_partitions([waiting]) == Aggregate(STOPPED, "STOPPED")


def test_counts_are_summed_and_checked() -> None:
    full = PartitionResult("a", COMPLETED, "COMPLETED", Counts(written=COUNT_MAX))
    one = PartitionResult("b", COMPLETED, "COMPLETED", Counts(read=1))
    assert aggregate_partitions([full, one]).counts == Counts(1, 0, COUNT_MAX)
    more = PartitionResult("b", COMPLETED, "COMPLETED", Counts(written=1))
    with pytest.raises(InvalidValue, match="the summed counts of the partitions"):
        aggregate_partitions([full, more])


@given(branches)
def test_the_aggregate_of_branches_is_one_of_them(results: list[BranchResult]) -> None:
    found = aggregate_branches(results)
    worst = max(Severity.of(one.status) for one in results)
    first = next(one for one in results if Severity.of(one.status) is worst)
    assert found == Aggregate(first.status, first.exit_code, first.failure)
    assert found.counts is NO_COUNTS


@given(branches, st.randoms(use_true_random=False))
def test_branches_may_complete_in_any_order(
    results: list[BranchResult], random: Random
) -> None:
    """Whoever ran them files each under its place; the order of filing is lost."""
    arrivals = list(enumerate(results))
    random.shuffle(arrivals)
    filed = dict(arrivals)
    declared = [filed[place] for place in range(len(results))]
    assert aggregate_branches(declared) == aggregate_branches(results)


@given(partitions, st.randoms(use_true_random=False))
def test_partitions_may_complete_in_any_order(
    results: list[PartitionResult], random: Random
) -> None:
    arrivals = list(results)
    random.shuffle(arrivals)
    assert aggregate_partitions(arrivals) == aggregate_partitions(results)


@given(partitions)
def test_partitions_are_complete_only_when_all_are(
    results: list[PartitionResult],
) -> None:
    found = aggregate_partitions(results)
    every = all(one.status is COMPLETED for one in results)
    assert (found.status is COMPLETED) == every
    begun = [one for one in results if one.status is not STARTING]
    assert found.counts == sum((one.counts for one in begun), NO_COUNTS)
