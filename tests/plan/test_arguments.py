"""Launch parameters: declared or not, from Python and from the command line."""

import random
from collections.abc import Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

from triolet.actors.plan.arguments import parse_arguments, resolve
from triolet.actors.plan.definition import Parameter
from triolet.storage.model.errors import InvalidName, InvalidParameter
from triolet.storage.model.parameters import ParameterKind, ParameterValue

DECLARED = (
    Parameter("day", str),
    Parameter("count", int, default=5),
    Parameter("dry", bool, default=False, identifying=False),
    Parameter("token", str, default="", identifying=False, secret=True),
)


def refusal_of(given: Mapping[str, object]) -> str:
    with pytest.raises(InvalidParameter) as caught:
        resolve(DECLARED, given)
    return str(caught.value)


def test_declared_parameters_are_completed_and_flagged() -> None:
    resolved = resolve(DECLARED, {"day": "monday", "token": "hunter2"})
    assert resolved.values() == {
        "day": "monday",
        "count": 5,
        "dry": False,
        "token": "hunter2",
    }
    flags = {one.name: (one.identifying, one.secret) for one in resolved}
    assert flags == {
        "day": (True, False),
        "count": (True, False),
        "dry": (False, False),
        "token": (False, True),
    }


def test_undeclared_parameters_are_all_identifying() -> None:
    resolved = resolve((), {"a": 1, "b": True, "c": "x"})
    kinds = {one.name: one.kind for one in resolved}
    assert kinds == {
        "a": ParameterKind.I64,
        "b": ParameterKind.BOOL,
        "c": ParameterKind.STRING,
    }
    assert all(one.identifying for one in resolved)


def test_an_integer_beyond_63_bits_is_unsigned() -> None:
    (one,) = resolve([Parameter("n", int)], {"n": 2**63})
    assert one.kind is ParameterKind.U64


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        (
            {"day": "x", "cuont": 1},
            "parameter 'cuont' is unknown to the job: did you mean 'count'?",
        ),
        (
            {"day": "x", "zzz": 1},
            "parameter 'zzz' is unknown to the job: "
            "it takes 'day', 'count', 'dry' and 'token'",
        ),
        ({}, "parameter 'day' is required, but missing"),
        ({"day": 7}, "parameter 'day' must be str, not int"),
        ({"day": None}, "parameter 'day' must be str, not NoneType"),
        ({"day": "x", "count": True}, "parameter 'count' must be int, not bool"),
        ({"day": "x", "count": 1.0}, "parameter 'count' must be int, not float"),
        ({"day": "x", "dry": 1}, "parameter 'dry' must be bool, not int"),
        (
            {"day": "x", "count": 2**64},
            "parameter 'count' is an integer of more than 64 bits",
        ),
        ({"day": "a\0b"}, "parameter 'day' holds the character U+0000"),
    ],
)
def test_what_does_not_fit_the_declaration_is_refused(
    given: dict[str, object], sentence: str
) -> None:
    assert refusal_of(given) == sentence


def test_every_missing_parameter_is_named() -> None:
    declared = [Parameter(name, int) for name in "abc"]
    with pytest.raises(InvalidParameter) as caught:
        resolve(declared, {})
    assert str(caught.value) == (
        "parameter 'a' is required, but missing, and so are 'b' and 'c'"
    )


@pytest.mark.parametrize("declared", [(), DECLARED])
def test_reserved_names_are_refused_by_their_prefix(
    declared: tuple[Parameter, ...],
) -> None:
    """C101: what the engine adds itself has a prefix that users cannot use."""
    with pytest.raises(InvalidParameter, match="is reserved: names may not start"):
        resolve(declared, {"triolet.run": 1, "day": "x"})


@pytest.mark.parametrize("name", ["run.id", "random", "id", "name", "version", "run"])
def test_names_that_look_reserved_are_the_users_own(name: str) -> None:
    """C101: no other name collides with anything."""
    assert resolve((), {name: 1}).values() == {name: 1}
    assert resolve([Parameter(name, int)], {name: 1}).values() == {name: 1}


def test_the_order_in_which_parameters_are_given_never_matters() -> None:
    """C103: one instance, whoever gives them in whatever order."""
    given = {"a": 1, "b": "2", "c": True, "d": "x", "é": -1, "f": 2**63}
    names = list(given)
    words = {"a": "a:int=1", "b": "b=2", "c": "c:bool=yes", "d": "d=x"} | {
        "é": "é:int=-1",
        "f": f"f:int={2**63}",
    }
    keys = set()
    shuffler = random.Random(0)
    for _ in range(50):
        shuffler.shuffle(names)
        keys.add(resolve((), {name: given[name] for name in names}).instance_key("j"))
        parsed = parse_arguments((), [words[name] for name in names])
        keys.add(resolve((), parsed).instance_key("j"))
    assert len(keys) == 1


def test_no_parameters_are_one_identity() -> None:
    """C099: none and only non-identifying ones are the same instance."""
    declared = [Parameter("note", str, default="", identifying=False)]
    keys = {
        resolve((), {}).instance_key("j"),
        resolve(declared, {}).instance_key("j"),
        resolve(declared, {"note": "x"}).instance_key("j"),
    }
    assert len(keys) == 1


def test_the_declared_type_decides_how_a_word_reads() -> None:
    words = ["day=5", "count=-7", "dry=Yes"]
    assert parse_arguments(DECLARED, words) == {"day": "5", "count": -7, "dry": True}
    assert parse_arguments(DECLARED, ["count:int=7"]) == {"count": 7}


def test_undeclared_words_are_text_unless_typed() -> None:
    words = ["a=5", "b:int=5", "c:bool=0", "d:str=x=y", "e=", "f:g:str=h:i"]
    assert parse_arguments((), words) == {
        "a": "5",
        "b": 5,
        "c": False,
        "d": "x=y",
        "e": "",
        "f:g": "h:i",
    }


@given(st.booleans() | st.integers(-(2**63), 2**64 - 1) | st.text())
def test_a_typed_word_reads_as_the_value_it_was_made_of(value: ParameterValue) -> None:
    word = f"x:{type(value).__name__}={value}"
    assert parse_arguments((), [word]) == {"x": value}


@pytest.mark.parametrize(
    ("word", "sentence"),
    [
        ("day", "parameter 'day' has no value: write NAME=VALUE"),
        ("count=s3cret", "parameter 'count' must be an integer, in decimal digits"),
        ("count=", "parameter 'count' must be an integer, in decimal digits"),
        ("count=1_000", "parameter 'count' must be an integer, in decimal digits"),
        ("count=٣", "parameter 'count' must be an integer, in decimal digits"),
        ("count=" + "9" * 5000, "parameter 'count' must be an integer, in decimal"),
        (
            "dry=s3cret",
            "parameter 'dry' must be a truth value, one of 'true', 'yes', '1', "
            "'false', 'no' and '0'",
        ),
        ("count:str=5", "parameter 'count' must be int, not str"),
        (
            "count:float=5",
            "parameter 'count' has an unknown type: after the colon write str, int "
            "or bool",
        ),
        (
            "cuont=s3cret",
            "parameter 'cuont' is unknown to the job: did you mean 'count'?",
        ),
    ],
)
def test_a_word_that_does_not_read_is_refused_without_its_value(
    word: str, sentence: str
) -> None:
    with pytest.raises(InvalidParameter) as caught:
        parse_arguments(DECLARED, [word])
    assert str(caught.value).startswith(sentence)
    assert "s3cret" not in str(caught.value)


def test_a_declared_name_may_hold_a_colon() -> None:
    declared = [Parameter("at:int", str)]
    assert parse_arguments(declared, ["at:int=x"]) == {"at:int": "x"}


def test_a_word_is_given_once() -> None:
    with pytest.raises(InvalidParameter, match="is given twice"):
        parse_arguments((), ["a=1", "a:int=2"])


def test_an_illegal_name_is_refused() -> None:
    with pytest.raises(InvalidName):
        parse_arguments((), ["=5"])
    with pytest.raises(InvalidName):
        resolve(DECLARED, {"": 1})
