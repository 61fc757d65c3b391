"""Digests of flow records: golden vectors, and what each byte depends on."""

from hashlib import sha256

from hypothesis import given
from hypothesis import strategies as st

from tests.strategies import counts, names
from triolet.storage.envelope import CHECKPOINT_FORMAT, Schema, seal
from triolet.storage.model.digests import (
    BranchInput,
    context_digest,
    decider_input,
    partition_worker,
    split_aggregate,
    step_input,
)
from triolet.storage.model.execution import Counts
from triolet.storage.model.names import NameKind, check_name
from triolet.storage.model.parameters import ParameterSet
from triolet.storage.model.status import BatchStatus

# Golden vectors D (the plan), I, J, K, L.
PLAN = bytes.fromhex("c0ea69669657cb8ec425801588a1f042608d8785333ad7d38d8a1f7ed5d8557f")
STEP_INPUT = "998f27442e5e0c1c7390ede6868ab27bef58f910cdbd136cd247e63a2a401f89"
DECIDER_INPUT = "b3339fdc40b649923508d28e87902363d01d1744a88a8361109df87f85278787"
# Our own: the same, at the second visit.
SECOND_INPUT = "638e751fd0094f00ab2b508cbdf195837be3b72aad87285198df34464f11601a"
WORKER = "45d29a64c7705cb471ecbe7130f2101c85dc406bf2e91fdae090ef9bed8d958b"
GENERATION = "36ed74521783eae07683de5228045c86d8360327f9ba0d5763028d64b5328bc4"


def loaded(context: str | None = None, version: int = 3) -> bytes:
    return step_input(
        PLAN,
        "load",
        3,
        version,
        BatchStatus.COMPLETED,
        "COMPLETED",
        Counts(10, 9, 9, 1, 1, 0),
        context,
    )


def decided(preceding: bytes | None, visit: int = 1) -> bytes:
    nothing = ParameterSet().projection()
    return decider_input(PLAN, "choose", "decider-v1", 1, 1, nothing, preceding, visit)


def test_a_step_input_is_the_golden_one() -> None:
    assert loaded().hex() == STEP_INPUT


def test_a_decider_input_is_the_golden_one() -> None:
    assert decided(loaded()).hex() == DECIDER_INPUT


def test_a_checkpoint_generation_is_the_golden_one() -> None:
    envelope = seal(
        CHECKPOINT_FORMAT, Schema("orders.position"), {"position": 6}, "a checkpoint"
    )

    assert len(envelope.encode()) == 125
    assert context_digest(envelope).hex() == GENERATION


def test_a_decider_may_have_nothing_before_it() -> None:
    assert decided(None) != decided(loaded())


def test_every_visit_of_a_decision_has_another_digest() -> None:
    found = {decided(None, visit) for visit in (1, 2, 3)}
    assert decided(loaded(), 2).hex() == SECOND_INPUT
    assert len(found | {decided(loaded(), visit) for visit in (1, 2, 3)}) == 6


def test_a_context_is_part_of_a_step_input() -> None:
    assert len({loaded(), loaded("{}"), loaded('{"a":1}')}) == 3


def test_running_a_step_again_changes_its_digest() -> None:
    assert loaded(version=3) != loaded(version=4)


@given(names, counts, st.integers(0, (1 << 64) - 1), st.sampled_from(BatchStatus))
def test_a_step_input_has_the_layout_of_the_specification(
    node: str, counted: Counts, step_id: int, status: BatchStatus
) -> None:
    raw = node.encode()
    numbers = [counted.read, counted.processed, counted.written]
    numbers += [counted.filtered, counted.committed, counted.rolled_back]
    layout = (
        b"oxide-batch.flow-step-input.v1\0"
        + PLAN
        + len(raw).to_bytes(8, "big")
        + raw
        + step_id.to_bytes(8, "big")
        + (5).to_bytes(8, "big")
        + len(status.value).to_bytes(8, "big")
        + status.value.encode()
        + (4).to_bytes(8, "big")
        + b"DONE"
        + b"".join(number.to_bytes(8, "big") for number in numbers)
        + sha256(b"{}").digest()
    )

    found = step_input(PLAN, node, step_id, 5, status, "DONE", counted, "{}")

    assert found == sha256(layout).digest()


def test_the_name_of_a_partition_worker_is_the_golden_one() -> None:
    found = partition_worker("partition_customers", "shard-01")

    assert found == f"__ob_partition_worker_{WORKER}"
    assert len(found) == 86


@given(names, st.text(st.characters(codec="utf-8"), min_size=1, max_size=32))
def test_the_name_of_a_partition_worker_is_a_legal_one_whatever_its_key(
    manager: str, key: str
) -> None:
    found = partition_worker(manager, key)

    assert check_name(found, NameKind.NODE) == check_name(found, NameKind.STEP)
    assert found != partition_worker(manager, f"{key}x")
    assert found != partition_worker(f"{manager}x", key)


branch_inputs = st.builds(
    BranchInput,
    st.sampled_from(BatchStatus),
    names,
    st.lists(st.binary(min_size=32, max_size=32), max_size=3).map(tuple),
)


@given(names, st.lists(branch_inputs, max_size=4))
def test_an_aggregate_has_the_layout_of_the_specification(
    join: str, branches: list[BranchInput]
) -> None:
    def of_text(text: str) -> bytes:
        return len(text.encode()).to_bytes(8, "big") + text.encode()

    layout = b"oxide-batch.split-aggregate-input.v1\0" + PLAN + of_text(join)
    for index, branch in enumerate(branches):
        layout += index.to_bytes(8, "big")
        layout += of_text(branch.status.value) + of_text(branch.exit_code)
        layout += b"".join(branch.steps)

    assert split_aggregate(PLAN, join, branches) == sha256(layout).digest()


def test_the_order_of_branches_is_part_of_an_aggregate() -> None:
    one = BranchInput(BatchStatus.COMPLETED, "COMPLETED", (loaded(),))
    other = BranchInput(BatchStatus.COMPLETED, "COMPLETED", (loaded(version=4),))
    there, back = (
        split_aggregate(PLAN, "join", order) for order in ([one, other], [other, one])
    )

    assert len(there) == len(back) == 32
    assert there != back
    assert decided(there) != decided(back)
