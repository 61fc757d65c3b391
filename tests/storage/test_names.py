"""Names: the rules, the order in which they are looked at, and what errors show."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.strategies import names
from triolet.storage.model.errors import InvalidName
from triolet.storage.model.names import NameKind, check_name

LENGTHS = {
    NameKind.JOB: 128,
    NameKind.STEP: 128,
    NameKind.NODE: 128,
    NameKind.PARAMETER: 128,
    NameKind.REVISION: 128,
    NameKind.LISTENER: 128,
    NameKind.SCHEMA: 128,
    NameKind.EXIT_CODE: 64,
    NameKind.PATTERN: 64,
}


def reason(text: object, kind: NameKind = NameKind.JOB) -> str:
    with pytest.raises(InvalidName) as caught:
        check_name(text, kind)
    assert caught.value.kind == kind.label
    return caught.value.reason


@given(names, st.sampled_from(NameKind))
def test_a_legal_name_comes_back_as_it_is(name: str, kind: NameKind) -> None:
    assert check_name(name, kind) is name


@pytest.mark.parametrize("name", ["a b", "Wäsche", "数", "e\u0301", "-", "1", "a.b/c"])
def test_names_are_never_normalised(name: str) -> None:
    assert check_name(name, NameKind.NODE) == name


@pytest.mark.parametrize("kind", NameKind)
def test_a_name_may_be_as_long_as_its_kind_says_in_bytes(kind: NameKind) -> None:
    longest = LENGTHS[kind]

    assert check_name("x" * longest, kind)
    assert check_name("é" * (longest // 2), kind)
    too_long = f"has {longest + 1} bytes, at most {longest} are allowed"
    assert reason("x" * (longest + 1), kind) == too_long
    assert reason("x" + "é" * (longest // 2), kind) == too_long


@pytest.mark.parametrize("value", [None, 7, b"load", ["load"]])
def test_a_name_is_text(value: object) -> None:
    assert reason(value) == f"must be text, not {type(value).__name__}"


def test_a_name_is_not_empty() -> None:
    assert reason("") == "must not be empty"


@pytest.mark.parametrize("space", [" ", "\t", "\n", "\u00a0", "\u2003", "\u0085"])
def test_a_name_has_no_white_space_around_it(space: str) -> None:
    around = "must not begin or end with white space"

    assert reason(space) == around
    assert reason(f"{space}load") == around
    assert reason(f"load{space}") == around


@pytest.mark.parametrize("control", ["\0", "\t", "\n", "\x1b", "\x7f", "\u0085"])
def test_a_control_character_is_reported_by_its_index(control: str) -> None:
    assert reason(f"é数{control}x") == "has a control character at index 2"


def test_a_lone_surrogate_is_no_text() -> None:
    assert reason("ab\ud800c") == "holds a lone surrogate at index 2"


def test_the_first_broken_rule_is_reported() -> None:
    assert "bytes" in reason(" " + "x" * 128)
    assert "bytes" in reason("x\0" + "x" * 128)
    assert "white space" in reason(" a\0b")
    assert "white space" in reason("\n")


@pytest.mark.parametrize("text", ["hunter2\0", " hunter2", "hunter2" * 30])
def test_an_error_never_repeats_the_text(text: str) -> None:
    with pytest.raises(InvalidName) as caught:
        check_name(text, NameKind.PARAMETER)

    assert "hunter2" not in str(caught.value)
    assert "hunter2" not in repr(caught.value)
