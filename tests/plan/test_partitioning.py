"""What planners return: the rules, and sentences that keep keys to themselves."""

from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from tests.strategies import json_objects, texts
from triolet.actors.plan.partitioning import check_partitions
from triolet.storage.envelope import CONTEXT_FORMAT, STATE_SCHEMA, unseal
from triolet.storage.model.errors import InvalidValue
from triolet.storage.model.json import JsonObject
from triolet.storage.model.partition import NewPartition

ENVELOPE = 124
"""Bytes around the payload ``{"x":""}`` of a context, with it."""


def refusal(result: object, count: int = 2) -> str:
    with pytest.raises(InvalidValue) as caught:
        check_partitions(result, count)
    return str(caught.value)


def test_a_plan_is_taken_in_as_it_is_ordered() -> None:
    found = check_partitions([("b", {"from": 1}), ["a", {}]], 2)
    assert [one.key for one in found] == ["b", "a"]
    assert found[0].context == (
        '{"format":"oxide-batch.execution-context","format_version":1,'
        '"payload":{"from":1},"schema":"triolet.state","schema_version":1}'
    )


def test_a_plan_is_a_list_or_a_tuple() -> None:
    assert len(check_partitions((("a", {}), ("b", {})), 2)) == 2
    for result, kind in (({"a": {}}, "dict"), (None, "NoneType"), ("ab", "str")):
        assert refusal(result) == (
            "what the planner returned must be a list of (key, context) pairs, "
            f"not {kind}"
        )
    assert "not generator" in refusal(one for one in ("a", "b"))


@pytest.mark.parametrize("count", [0, 1, 3, 1024])
def test_the_number_of_partitions_is_the_declared_one(count: int) -> None:
    pairs: list[object] = [(str(number), {}) for number in range(count)]
    assert refusal(pairs) == (
        f"what the planner returned must have 2 partitions, not {count}"
    )
    assert len(check_partitions(pairs, count)) == count


@pytest.mark.parametrize(
    ("pair", "kind"),
    [("ab", "str"), (("a",), "tuple"), (["a", {}, 1], "list"), (None, "NoneType")],
)
def test_a_partition_is_a_pair(pair: object, kind: str) -> None:
    assert refusal([("x", {}), pair]) == (
        f"partition 2 must be a pair of key and context, not {kind}"
    )


@pytest.mark.parametrize(
    ("key", "reason"),
    [
        ("", "must not be empty"),
        (5, "must be text, not int"),
        (b"a", "must be text, not bytes"),
        ("x" * 129, "has 129 bytes, at most 128 are allowed"),
        ("é" * 65, "has 130 bytes, at most 128 are allowed"),
        ("a\0", "holds the character U+0000"),
        ("\ud800", "holds a lone surrogate"),
    ],
)
def test_keys_are_checked(key: object, reason: str) -> None:
    assert refusal([("x", {}), (key, {})]) == f"the key of partition 2 {reason}"


@pytest.mark.parametrize("key", ["x" * 128, "é" * 64, " a ", "\n", "A"])
def test_any_other_text_is_a_key(key: str) -> None:
    assert check_partitions([("a", {}), (key, {})], 2)[1].key == key


def test_a_key_is_taken_once() -> None:
    assert refusal([("a", {}), ("b", {}), ("a", {})], 3) == (
        "partition 3 has the key of partition 1"
    )


@pytest.mark.parametrize(
    ("context", "reason"),
    [
        (None, "must be a dict of JSON values, not NoneType"),
        ([], "must be a dict of JSON values, not list"),
        ({"day": float("nan")}, "['day'] holds NaN or infinity, which JSON has not"),
        ({"day": {1}}, "['day'] holds a set, which is not JSON"),
        ({1: 2}, " has a key of type int, not str"),
    ],
)
def test_contexts_are_checked(context: object, reason: str) -> None:
    said = refusal([("a", {}), ("b", context)])
    assert said.startswith("the context of partition 2")
    assert said.endswith(reason)


@pytest.mark.parametrize("letter", ["x", "é"])
def test_the_envelope_of_a_context_is_bounded_in_bytes(letter: str) -> None:
    size = len(letter.encode())
    room = (4096 - ENVELOPE) // size
    (found,) = check_partitions([("a", {"x": letter * room})], 1)
    assert len(found.context.encode()) == ENVELOPE + room * size <= 4096
    assert refusal([("a", {"x": letter * (room + 1)})], 1) == (
        f"the context of partition 1 takes {ENVELOPE + (room + 1) * size} bytes, "
        "at most 4096 are allowed"
    )
    assert "takes 100124 bytes" in refusal([("a", {"x": "x" * 100_000})], 1)


def test_a_context_that_contains_itself_is_refused() -> None:
    endless: dict[str, Any] = {}
    endless["x"] = endless
    assert "nested too deeply" in refusal([("a", endless)], 1)


def test_keys_and_contexts_are_not_shown() -> None:
    (found,) = check_partitions([("customer 4711", {"name": "Meier"})], 1)
    assert repr(found) == "NewPartition()"
    twice: list[object] = [("customer 4711", {}), ("customer 4711", {})]
    assert "4711" not in refusal(twice)


@given(st.dictionaries(texts.filter(bool), json_objects, max_size=4))
def test_what_is_sound_comes_back_as_it_was(plan: dict[str, JsonObject]) -> None:
    try:
        found = check_partitions(list(plan.items()), len(plan))
    except InvalidValue as exc:
        assume("are allowed" not in str(exc))
        assume("is nested deeper" not in str(exc))
        raise
    assert all(isinstance(one, NewPartition) for one in found)
    what = "a context"
    assert {
        one.key: unseal(CONTEXT_FORMAT, STATE_SCHEMA, one.context, what)
        for one in found
    } == plan
