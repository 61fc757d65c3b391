"""Parameters: kinds, bounds, redaction, identity."""

import random
from typing import cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.strategies import job_parameters, names, parameter_sets, texts
from triolet.storage.model.errors import InvalidName, InvalidParameter
from triolet.storage.model.lineage import Lineage, lineage_of, without_lineage
from triolet.storage.model.parameters import (
    JobParameter,
    ParameterKind,
    ParameterSet,
    ParameterValue,
    parameters_of,
)

K = ParameterKind
I64_MAX = (1 << 63) - 1
U64_MAX = (1 << 64) - 1

CHILD_KEY = "0720d23b67d61cf47c88aa3401a1f6b9b5414e813199c744c3e7024ec6ecbf98"

# Golden vectors G and H.
FOUR = (
    JobParameter("business_date", K.STRING, "2026-01-31"),
    JobParameter("count", K.I64, -5),
    JobParameter("enabled", K.BOOL, True),
    JobParameter("limit", K.U64, 7),
)
NOTE = JobParameter("note", K.STRING, "x", identifying=False)
KEY = "e7f20175d6dedfeaddc94cffa9b1676172130a81dc163da5d1795f947ef48d8e"
PROJECTION = "84f6b82402362afd8bc48e85603997289d88697aa8a65c8cc746f0e2463273ac"
NOTHING = "9909a84175df81f637574c9286be8e2b1a64d67c882a9d765f52c5693781fa34"


def refusal(kind: ParameterKind, value: object) -> str:
    with pytest.raises(InvalidParameter) as caught:
        JobParameter("limit", kind, cast("ParameterValue", value))
    assert caught.value.name == "limit"
    return caught.value.reason


def test_an_instance_key_is_the_golden_one() -> None:
    assert ParameterSet(FOUR).instance_key("daily_import").hex() == KEY


def test_an_instance_key_ignores_what_does_not_identify() -> None:
    assert ParameterSet((*FOUR, NOTE)).instance_key("daily_import").hex() == KEY


def test_a_projection_is_the_golden_one() -> None:
    assert ParameterSet((*FOUR, NOTE)).projection().hex() == PROJECTION
    assert ParameterSet().projection().hex() == NOTHING


def test_six_parameters_in_any_order_are_one_instance() -> None:
    values: dict[str, ParameterValue] = {
        "business_date": "2026-01-31",
        "région": "été",
        "count": -5,
        "limit": U64_MAX,
        "enabled": True,
        "z": "",
    }
    shuffler = random.Random(103)
    keys = set()
    for _ in range(50):
        items = list(values.items())
        shuffler.shuffle(items)
        keys.add(parameters_of(dict(items)).instance_key("daily_import"))

    assert len(keys) == 1


@given(
    st.lists(job_parameters(), max_size=6, unique_by=lambda one: one.name), st.data()
)
def test_order_never_matters(items: list[JobParameter], data: st.DataObject) -> None:
    shuffled = data.draw(st.permutations(items))

    assert ParameterSet(tuple(shuffled)) == ParameterSet(tuple(items))


@given(parameter_sets)
def test_a_set_is_ordered_by_name_bytes(parameters: ParameterSet) -> None:
    found = [one.name.encode() for one in parameters]

    assert found == sorted(found)


@given(parameter_sets, parameter_sets)
def test_keys_are_equal_when_and_only_when_identities_are(
    one: ParameterSet, other: ParameterSet
) -> None:
    same = identity(one) == identity(other)

    assert (one.instance_key("j") == other.instance_key("j")) is same
    assert one.instance_key("j") != one.instance_key("k")


def identity(parameters: ParameterSet) -> list[tuple[str, ParameterKind, object]]:
    return [(one.name, one.kind, one.value) for one in parameters if one.identifying]


def test_the_kind_is_part_of_the_identity() -> None:
    ones = (
        JobParameter("n", K.I64, 1),
        JobParameter("n", K.U64, 1),
        JobParameter("n", K.BOOL, True),
        JobParameter("n", K.STRING, "1"),
    )

    assert len({ParameterSet((one,)).instance_key("j") for one in ones}) == 4


def test_names_and_values_do_not_run_into_each_other() -> None:
    one = parameters_of({"ab": "c", "d": "e"})
    other = parameters_of({"a": "bc", "d": "e"})

    assert one.instance_key("j") != other.instance_key("j")
    assert one.projection() != other.projection()


@pytest.mark.parametrize(
    ("value", "kind"),
    [
        ("", K.STRING),
        ("7", K.STRING),
        (True, K.BOOL),
        (0, K.I64),
        (-(1 << 63), K.I64),
        (I64_MAX, K.I64),
        (I64_MAX + 1, K.U64),
        (U64_MAX, K.U64),
    ],
)
def test_a_plain_value_has_a_kind(value: ParameterValue, kind: ParameterKind) -> None:
    (parameter,) = parameters_of({"n": value})

    assert (parameter.kind, parameter.value) == (kind, value)
    assert parameter.identifying
    assert not parameter.secret


@pytest.mark.parametrize("value", [U64_MAX + 1, -(1 << 63) - 1, 1.5, None, b"x", ["x"]])
def test_any_other_value_is_refused(value: object) -> None:
    with pytest.raises(InvalidParameter):
        parameters_of({"n": value})


@pytest.mark.parametrize(
    ("kind", "value"),
    [
        (K.I64, I64_MAX + 1),
        (K.I64, -(1 << 63) - 1),
        (K.I64, True),
        (K.I64, "7"),
        (K.I64, 7.0),
        (K.U64, -1),
        (K.U64, U64_MAX + 1),
        (K.U64, False),
        (K.BOOL, 1),
        (K.BOOL, "true"),
        (K.STRING, 7),
        (K.STRING, None),
    ],
)
def test_a_value_fits_its_kind(kind: ParameterKind, value: object) -> None:
    assert refusal(kind, value) == f"does not fit its kind {kind.name}"


def test_a_text_has_at_most_65536_bytes() -> None:
    JobParameter("text", K.STRING, "é" * 32_768)
    reason = refusal(K.STRING, "é" * 32_768 + "x")
    assert reason == "has 65537 bytes, at most 65536 are allowed"


def test_a_text_can_be_stored() -> None:
    assert refusal(K.STRING, "a\0b") == "holds the character U+0000"
    assert refusal(K.STRING, "\ud800") == "holds a lone surrogate"


def test_a_name_follows_the_rules_of_names() -> None:
    with pytest.raises(InvalidName):
        JobParameter(" day", K.I64, 1)
    with pytest.raises(InvalidName):
        parameters_of({"": 1})


def test_a_name_is_given_once() -> None:
    twice = (JobParameter("n", K.I64, 1), JobParameter("n", K.STRING, "1"))

    with pytest.raises(InvalidParameter) as caught:
        ParameterSet(twice)
    assert str(caught.value) == "parameter 'n' is given twice"


@pytest.mark.parametrize("name", ["run.id", "random", "id", "name", "version", "run"])
def test_names_that_look_reserved_are_kept_as_they_are(name: str) -> None:
    assert parameters_of({name: "mine"}).values() == {name: "mine"}


@pytest.mark.parametrize("name", ["triolet.run", "triolet.", "triolet.x"])
def test_the_reserved_prefix_is_refused(name: str) -> None:
    with pytest.raises(InvalidParameter) as caught:
        parameters_of({name: 1})

    assert "reserved" in str(caught.value)
    assert "'triolet.'" in str(caught.value)


def test_a_run_number_makes_another_instance() -> None:
    day = parameters_of({"day": 1})
    runs = [day, day.with_run(1), day.with_run(2)]

    assert len({one.instance_key("j") for one in runs}) == 3
    assert day.with_run(3).values() == {"day": 1, "triolet.run": 3}


@given(
    st.sampled_from(["hunter2", "hunter2 again"]), st.booleans(), st.booleans(), names
)
def test_no_value_is_ever_shown(
    value: str, identifying: bool, secret: bool, name: str
) -> None:
    parameter = JobParameter(name, K.STRING, value, identifying, secret)

    for shown in (repr(parameter), str(parameter), repr(ParameterSet((parameter,)))):
        assert "hunter2" not in shown
    assert repr(parameter) == "JobParameter(STRING, <redacted>)"


def test_a_set_shows_its_size_only() -> None:
    shown = repr(ParameterSet((*FOUR, NOTE)))

    assert shown == "ParameterSet(5 parameters, 4 identifying)"


@given(texts)
def test_a_refused_value_is_not_in_the_error(text: str) -> None:
    secret = f"hunter2{text}\0"

    with pytest.raises(InvalidParameter) as caught:
        parameters_of({"token": secret})
    assert "hunter2" not in str(caught.value)


def test_values_are_given_by_name() -> None:
    assert ParameterSet(FOUR).values() == {
        "business_date": "2026-01-31",
        "count": -5,
        "enabled": True,
        "limit": 7,
    }
    assert len(ParameterSet(FOUR)) == 4


def test_the_key_of_a_child_never_changes() -> None:
    """C104: a restart finds the child by it, in whatever release."""
    lineage = Lineage(7, "settle", 12)
    own = parameters_of({"day": "2026-12-03", "count": 5})
    made = lineage.of_child(own)
    assert made.instance_key("child").hex() == CHILD_KEY
    assert made.instance_key("child") == lineage.instance_key("child")
    later = Lineage(7, "settle", 13).of_child(parameters_of({"day": "other"}))
    assert later.instance_key("child") == lineage.instance_key("child")
    assert lineage_of(made) == lineage
    again = Lineage(7, "settle", 12, visit=2)
    assert again.instance_key("child") != lineage.instance_key("child")
    assert lineage_of(again.of_child(own)) == again
    assert without_lineage(again.of_child(own)) == without_lineage(made)
    assert lineage_of(own) is None
    assert without_lineage(made).values() == own.values()
    assert without_lineage(own) == own
