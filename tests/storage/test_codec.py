"""The codec: canonical JSON, sealed state, and what is kept as text."""

import json
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.strategies import facts, failures, json_objects, json_values, parameter_sets
from tests.strategies import targets as every_target
from triolet.storage.codec import (
    decode_facts,
    decode_failure,
    decode_parameters,
    decode_target,
    encode_facts,
    encode_failure,
    encode_parameters,
    encode_target,
)
from triolet.storage.commands import OwnerFacts
from triolet.storage.envelope import (
    BYTES_MAX,
    CHECKPOINT_FORMAT,
    CONTEXT_FORMAT,
    DEPTH_MAX,
    STATE_SCHEMA,
    Schema,
    canonical_json,
    depth_of,
    seal,
    unseal,
)
from triolet.storage.model.errors import CorruptRecord, InvalidName, InvalidValue
from triolet.storage.model.execution import Failure, NodeTarget, Stop, Target, Terminal
from triolet.storage.model.json import Json, JsonObject
from triolet.storage.model.parameters import (
    JobParameter,
    ParameterKind,
    ParameterSet,
    parameters_of,
)
from triolet.storage.model.status import FailureCategory

GOOD = (
    '{"format":"oxide-batch.checkpoint","format_version":1,"payload":{"n":1},'
    '"schema":"orders.position","schema_version":2}'
)
POSITION = Schema("orders.position", 2)


def refusal(value: object) -> str:
    with pytest.raises(InvalidValue) as caught:
        canonical_json(value, "the state")
    return str(caught.value)


def nested(depth: int) -> Json:
    """Make a list whose nesting, as `depth_of` counts, is *depth*."""
    value: Json = 1
    for _ in range(depth - 1):
        value = [value]
    return value


@given(json_values)
def test_canonical_json_is_read_back_exactly(value: Json) -> None:
    text = canonical_json(value)

    assert json.loads(text) == value
    assert canonical_json(json.loads(text)) == text


@given(json_objects)
def test_the_order_of_keys_does_not_matter(value: JsonObject) -> None:
    turned = dict(reversed(value.items()))

    assert canonical_json(turned) == canonical_json(value)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, "null"),
        (True, "true"),
        (1, "1"),
        (1.0, "1.0"),
        (-0.0, "-0.0"),
        (1 << 70, "1180591620717411303424"),
        ((1, [2]), "[1,[2]]"),
        ({"b": 1, "a": {"d": [], "c": ""}}, '{"a":{"c":"","d":[]},"b":1}'),
        ("é数𝄞\u2028/", '"é数𝄞\u2028/"'),
        ('"\\\b\t\n\f\r\x01\x1f\x7f', '"\\"\\\\\\b\\t\\n\\f\\r\\u0001\\u001f\x7f"'),
    ],
)
def test_there_is_one_text_for_each_value(value: object, text: str) -> None:
    assert canonical_json(value) == text


def test_keys_are_sorted_by_their_bytes() -> None:
    keys = ["z", "é", "\uffff", "𝄞", "a"]

    text = canonical_json(dict.fromkeys(keys, 1))

    assert list(json.loads(text)) == sorted(keys, key=str.encode)


@pytest.mark.parametrize(
    ("value", "sentence"),
    [
        ({"at": object()}, "the state['at'] holds an object, which is not JSON"),
        ([1, b"x"], "the state[1] holds a bytes, which is not JSON"),
        ({"a": {1, 2}}, "the state['a'] holds a set, which is not JSON"),
        ({7: 1}, "the state has a key of type int, not str"),
        ({"a": {None: 1}}, "the state['a'] has a key of type NoneType, not str"),
        (float("nan"), "the state holds NaN or infinity, which JSON has not"),
        ([float("-inf")], "the state[0] holds NaN or infinity, which JSON has not"),
        ("a\0b", "the state holds the character U+0000"),
        ({"a\0b": 1}, "a key of the state holds the character U+0000"),
        (["\udc80"], "the state[0] holds a lone surrogate"),
    ],
)
def test_what_could_not_be_read_back_is_refused(value: object, sentence: str) -> None:
    assert refusal(value) == sentence


def test_an_integer_that_the_interpreter_cannot_write_is_refused() -> None:
    assert refusal(10**5000) == "the state holds an integer of too many digits"


def test_a_value_inside_itself_is_refused() -> None:
    inside: list[object] = []
    inside.append(inside)

    assert "nested too deeply" in refusal(inside)


@pytest.mark.parametrize("depth", [*range(985, 1005), 5000])
def test_nesting_never_breaks_the_interpreter(depth: int) -> None:
    value = nested(depth)

    with suppress(InvalidValue):
        assert len(canonical_json(value)) == 2 * depth - 1


@pytest.mark.parametrize(
    ("value", "depth"),
    [(1, 1), ("x", 1), ([], 1), ({}, 1), ([1], 2), ({"a": [[]], "b": 1}, 3)],
)
def test_depth_counts_containers_and_the_scalar_inside(
    value: object, depth: int
) -> None:
    assert depth_of(value) == depth


@given(json_objects, st.sampled_from([CHECKPOINT_FORMAT, CONTEXT_FORMAT]))
def test_what_was_sealed_is_unsealed(payload: JsonObject, kind: str) -> None:
    text = seal(kind, STATE_SCHEMA, payload, "the state")

    assert unseal(kind, STATE_SCHEMA, text, "the state") == payload
    assert json.loads(text)["format_version"] == 1
    assert canonical_json(json.loads(text)) == text


def test_nothing_stored_is_the_empty_state() -> None:
    assert unseal(CONTEXT_FORMAT, STATE_SCHEMA, None, "the state") == {}


@pytest.mark.parametrize("payload", [None, [], "x", 7, (("a", 1),)])
def test_a_state_is_an_object(payload: object) -> None:
    with pytest.raises(InvalidValue) as caught:
        seal(CONTEXT_FORMAT, STATE_SCHEMA, payload, "the state of 'load'")

    kind = type(payload).__name__
    sentence = f"the state of 'load' must be a dict of JSON values, not {kind}"
    assert str(caught.value) == sentence


def test_a_state_has_at_most_65536_bytes_with_its_envelope() -> None:
    empty = len(seal(CONTEXT_FORMAT, STATE_SCHEMA, {"a": ""}, "it").encode())
    fits = {"a": "é" * ((BYTES_MAX - empty) // 2)}

    text = seal(CONTEXT_FORMAT, STATE_SCHEMA, fits, "it")

    assert BYTES_MAX - 1 <= len(text.encode()) <= BYTES_MAX
    assert unseal(CONTEXT_FORMAT, STATE_SCHEMA, text, "it") == fits
    with pytest.raises(InvalidValue, match="bytes, at most 65536 are allowed"):
        seal(CONTEXT_FORMAT, STATE_SCHEMA, {"a": fits["a"] + "xy"}, "it")


def test_a_state_has_at_most_16_levels_with_its_envelope() -> None:
    fits = {"a": nested(DEPTH_MAX - 2)}

    text = seal(CONTEXT_FORMAT, STATE_SCHEMA, fits, "it")

    assert depth_of(json.loads(text)) == DEPTH_MAX
    assert unseal(CONTEXT_FORMAT, STATE_SCHEMA, text, "it") == fits
    with pytest.raises(InvalidValue, match="deeper than 16 levels"):
        seal(CONTEXT_FORMAT, STATE_SCHEMA, {"a": nested(DEPTH_MAX - 1)}, "it")


@pytest.mark.parametrize("depth", [100, 500, 990, 995, 5000])
def test_a_state_of_any_depth_is_refused_in_words(depth: int) -> None:
    with pytest.raises(InvalidValue):
        seal(CONTEXT_FORMAT, STATE_SCHEMA, {"a": nested(depth)}, "it")


def test_an_envelope_is_unsealed_by_its_own_schema() -> None:
    assert unseal(CHECKPOINT_FORMAT, POSITION, GOOD, "it") == {"n": 1}


@pytest.mark.parametrize(
    ("old", "new", "reason"),
    [
        ("}", "", "is not JSON"),
        ('{"n":1}', '{"n":NaN}', "is not JSON"),
        (GOOD, "[]", "is not a JSON object"),
        ("checkpoint", "execution-context", "is of another format"),
        ('"format":', '"fromat":', "is of another format"),
        ('format_version":1', 'format_version":2', "has another format version"),
        ('format_version":1', 'format_version":true', "has another format version"),
        ('format_version":1', 'format_version":1.0', "has another format version"),
        ("orders.position", "orders.other", "follows another schema"),
        ('"schema":"orders.position"', '"schema":null', "follows another schema"),
        ('schema_version":2', 'schema_version":3', "has another schema version"),
        ('schema_version":2', 'schema_version":"2"', "has another schema version"),
        ('{"n":1}', "[1]", "has no object as payload"),
        ('"payload"', '"load"', "has no object as payload"),
        ('"schema_version":2', '"schema_version":2,"x":1', "has unknown members"),
    ],
)
def test_a_damaged_envelope_is_never_guessed_at(
    old: str, new: str, reason: str
) -> None:
    damaged = GOOD.replace(old, new)

    assert damaged != GOOD
    assert damage(damaged) == f"it {reason}"


@pytest.mark.parametrize(
    ("payload", "reason"),
    [
        ('"' + "x" * BYTES_MAX + '"', "it has more than 65536 bytes"),
        ("[" * 20_000 + "]" * 20_000, "it is not JSON"),
        ("[" * 16 + "]" * 16, "it is nested deeper than 16 levels"),
        ('{"n":' * 500 + "1" + "}" * 500, "it is nested deeper than 16 levels"),
    ],
    ids=["long", "unreadable", "deep", "deeper"],
)
def test_an_envelope_beyond_the_limits_is_refused(payload: str, reason: str) -> None:
    assert damage(GOOD.replace('{"n":1}', payload)) == reason


def damage(text: str) -> str:
    with pytest.raises(CorruptRecord) as caught:
        unseal(CHECKPOINT_FORMAT, POSITION, text, "the checkpoint of step 7")
    assert caught.value.what == "the checkpoint of step 7"
    return caught.value.reason


def test_checks_of_an_envelope_have_an_order() -> None:
    everything_wrong = '{"format":"x","format_version":9,"payload":1,"schema":"y"}'
    repaired = everything_wrong.replace('"x"', '"oxide-batch.checkpoint"')

    with pytest.raises(CorruptRecord, match=r"another format$"):
        unseal(CHECKPOINT_FORMAT, POSITION, everything_wrong, "it")
    with pytest.raises(CorruptRecord, match=r"another format version$"):
        unseal(CHECKPOINT_FORMAT, POSITION, repaired, "it")
    with pytest.raises(CorruptRecord, match=r"another schema$"):
        unseal(CHECKPOINT_FORMAT, POSITION, repaired.replace("9", "1"), "it")


def test_a_schema_has_a_legal_name_and_a_version_from_one() -> None:
    with pytest.raises(InvalidName):
        Schema(" orders")
    with pytest.raises(InvalidValue):
        Schema("orders", 0)


@given(st.none() | failures)
def test_a_failure_is_read_back(failure: Failure | None) -> None:
    assert decode_failure(encode_failure(failure)) == failure


@given(facts)
def test_an_owner_is_read_back(owner: OwnerFacts) -> None:
    assert decode_facts(encode_facts(owner)) == owner


@given(every_target)
def test_a_target_is_read_back(target: Target) -> None:
    assert decode_target(encode_target(target)) == target


def test_stored_words_are_durable() -> None:
    failure = Failure(FailureCategory.TIMEOUT, 7, where="load")

    assert encode_failure(failure) == '{"category":"TIMEOUT","id":7,"where":"load"}'
    assert encode_target(NodeTarget("complete")) == "node:complete"
    assert encode_target(Terminal.COMPLETE) == "terminal:complete"
    assert encode_target(Stop("load")) == "resume:load"
    assert encode_facts(OwnerFacts(host="mill", pid=4)) == '{"host":"mill","pid":4}'
    assert (
        encode_parameters(parameters_of({"n": 1}), identifying_only=False)
        == '{"n":{"identifying":true,"type":"I64","value":1}}'
    )


@pytest.mark.parametrize(
    "word", ["", "node", "node:", "terminal:", "terminal:x", "resume:", "x:y"]
)
def test_a_damaged_target_is_refused(word: str) -> None:
    with pytest.raises(CorruptRecord):
        decode_target(word)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "null",
        "[]",
        '{"category":"TIMEOUT"}',
        '{"category":"LATE","id":7}',
        '{"category":"TIMEOUT","id":7,"trace":"x"}',
    ],
)
def test_a_damaged_failure_is_refused(text: str) -> None:
    with pytest.raises(CorruptRecord):
        decode_failure(text)


@pytest.mark.parametrize(
    "text", ["", "[]", '{"host":"mill"}', '{"host":"m","pid":"x"}']
)
def test_a_damaged_owner_is_refused(text: str) -> None:
    with pytest.raises(CorruptRecord):
        decode_facts(text)


@given(parameter_sets)
def test_parameters_are_read_back_without_secret_values(
    parameters: ParameterSet,
) -> None:
    stored = decode_parameters(encode_parameters(parameters, identifying_only=False))

    assert [one.name for one in stored] == [one.name for one in parameters]
    for found, given_ in zip(stored, parameters, strict=True):
        if given_.secret:
            assert (found.kind, found.secret) == (given_.kind, True)
            assert found.value in ("", 0, False)
        else:
            assert found == given_


@given(parameter_sets)
def test_identifying_parameters_are_stored_apart(parameters: ParameterSet) -> None:
    stored = decode_parameters(encode_parameters(parameters, identifying_only=True))

    wanted = [one.name for one in parameters if one.identifying]
    assert [one.name for one in stored] == wanted


def test_a_secret_value_is_not_in_the_text() -> None:
    secret = JobParameter("token", ParameterKind.STRING, "hunter2", secret=True)

    text = encode_parameters(ParameterSet((secret,)), identifying_only=False)

    assert text == '{"token":{"identifying":true,"secret":true,"type":"STRING"}}'


def test_parameters_take_at_most_a_mebibyte() -> None:
    many = parameters_of({f"p{number}": "x" * 60_000 for number in range(18)})

    with pytest.raises(InvalidValue, match="more than 1048576 bytes"):
        encode_parameters(many, identifying_only=False)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[]",
        '{"n":{}}',
        '{"n":{"identifying":true,"type":"F64","value":1}}',
        '{"n":{"identifying":true,"type":"I64","value":true}}',
        '{"n":{"identifying":true,"type":"I64"}}',
        '{" n":{"identifying":true,"type":"I64","value":1}}',
    ],
)
def test_damaged_parameters_are_refused(text: str) -> None:
    with pytest.raises(CorruptRecord):
        decode_parameters(text)
