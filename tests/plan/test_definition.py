"""The constructors of a definition record what they are given, and judge nothing."""

from collections.abc import Callable
from typing import Any

import pytest
from attrs.exceptions import FrozenInstanceError

from triolet.actors.plan.definition import (
    COMPLETE,
    FILTERED,
    REQUIRED,
    Chunk,
    Decision,
    Exit,
    FailurePolicy,
    InFlight,
    Job,
    OnStop,
    Parameter,
    PartitionedStep,
    Split,
    Step,
)
from triolet.storage.model.errors import InvalidName, InvalidValue

from .definitions import Reader, Writer, work

STEP = Step("a", work)


def test_nodes_may_come_from_any_iterable() -> None:
    job = Job("j", (Step(name, work) for name in "ab"), parameters=iter(()))
    assert [node.id for node in job.steps] == ["a", "b"]
    assert job.parameters == ()


def test_a_definition_does_not_change_with_what_it_was_made_of() -> None:
    then = {"*": COMPLETE}
    step = Step("a", work, then=then)
    choice = Decision("b", work, then=then)
    then.clear()
    assert step.then == choice.then == {"*": COMPLETE}
    with pytest.raises(FrozenInstanceError):
        step.id = "c"  # type: ignore[misc]


def test_definitions_are_values() -> None:
    assert Step("a", work, then={"*": "b"}) == Step("a", work, then={"*": "b"})
    assert len({Step("a", work), Step("a", work)}) == 1


def test_a_branch_may_be_one_step_or_any_iterable_of_them() -> None:
    other = Step("b", work)
    split = Split("p", [STEP, (step for step in (other,)), [STEP, other]])
    assert split.branches == ((STEP,), (other,), (STEP, other))


def test_what_is_no_step_is_kept_in_its_branch_for_the_compiler() -> None:
    inner: Any = Split("q", [])
    wrong: Any = work
    split: Any = Split("p", [inner, wrong])
    assert split.branches == ((inner,), (work,))


def test_policies_are_accepted_as_words() -> None:
    assert Step("a", work, on_stop="cooperate").on_stop is OnStop.COOPERATE
    chunk = Chunk(Reader(), Writer(), in_flight="rollback_chunk")
    assert chunk.in_flight is InFlight.ROLLBACK_CHUNK
    split = Split("p", [], on_failure="drain_siblings")
    assert split.on_failure is FailurePolicy.DRAIN_SIBLINGS
    step = PartitionedStep("p", STEP, work, 2, on_failure="drain_siblings")
    assert step.on_failure is FailurePolicy.DRAIN_SIBLINGS


def test_an_unknown_word_is_kept_for_the_compiler() -> None:
    assert Step("a", work, on_stop="kill").on_stop == "kill"
    assert Split("p", [], on_failure="wait").on_failure == "wait"


@pytest.mark.parametrize("code", ["", " PART", "x" * 65])
def test_an_illegal_exit_code_is_refused_where_it_is_made(code: str) -> None:
    with pytest.raises(InvalidName):
        Exit(code)


@pytest.mark.parametrize(
    ("make", "given", "text"),
    [
        (lambda x: Job("j", x), STEP, "the steps of a job must be a list, not Step"),
        (lambda x: Job("j", x), "abc", "the steps of a job must be a list, not str"),
        (
            lambda x: Job("j", [STEP], parameters=x),
            Parameter("day", str),
            "the parameters of a job must be a list, not Parameter",
        ),
        (
            lambda x: Step("a", work, listeners=x),
            5,
            "listeners must be a list, not int",
        ),
        (lambda x: Step("a", work, then=x), "b", "then must be a dict, not str"),
        (lambda x: Decision("a", work, then=x), None, "then must be a dict, not None"),
        (lambda x: Split("p", x), STEP, "the branches of a split must be a list"),
        (lambda x: Split("p", [x]), "abc", "a branch must be a list, not str"),
        (lambda x: Split("p", [], then=x), "b", "then must be a dict, not str"),
    ],
)
def test_what_is_no_list_or_dict_is_refused_where_it_is_given(
    make: Callable[[Any], object], given: object, text: str
) -> None:
    with pytest.raises(InvalidValue, match=f"^{text}"):
        make(given)


def test_sentinels_read_as_their_names() -> None:
    assert (repr(FILTERED), repr(REQUIRED)) == ("FILTERED", "REQUIRED")


def test_the_repr_of_a_parameter_hides_its_default() -> None:
    assert "hunter2" not in repr(Parameter("token", str, default="hunter2"))
