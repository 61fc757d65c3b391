"""Every mistake that a definition can hold, each found at its node."""

from collections.abc import Iterable
from typing import Any, cast

import pytest

from triolet.actors.plan.compile import CompiledJob, compile_job
from triolet.actors.plan.definition import (
    COMPLETE,
    STOP,
    Chunk,
    Decision,
    Job,
    JobListener,
    Node,
    Parameter,
    PartitionedStep,
    Split,
    Step,
    StepListener,
)
from triolet.storage.model.errors import DefinitionError, Problem

from .definitions import (
    AsyncAtomicWriter,
    ElsewhereWriter,
    Reader,
    Writer,
    decision,
    problems_of,
    work,
)

REVISIONS = [f"{part}_revision" for part in ("reader", "processor", "writer")]


def found(*steps: Node, **settings: Any) -> list[str]:
    return problems_of(Job("j", steps, **settings))


def of_step(*, do: object = work, **settings: Any) -> list[str]:
    return found(Step("a", cast("Any", do), **settings))


def of_chunk(reader: object = None, writer: object = None, **rest: Any) -> list[str]:
    return of_step(do=Chunk(reader or Reader(), writer or Writer(), **rest))


def of_then(then: Any, *others: Node) -> list[str]:
    return found(Decision("a", work, then=then), *others)


def test_a_job_needs_a_step() -> None:
    assert found() == ["it has no steps"]


@pytest.mark.parametrize("name", ["", " x", "a\nb", "x" * 129, 5])
def test_a_bad_job_name_is_refused_and_not_repeated(name: Any) -> None:
    with pytest.raises(DefinitionError) as caught:
        compile_job(Job(name, [Step("a", work)]))
    assert caught.value.job == "?"
    (problem,) = caught.value.problems
    assert problem.node is None
    assert problem.reason.startswith("the job name")


def test_bad_names_of_every_kind_are_refused() -> None:
    assert found(Step("a", work), revision="") == ["the revision must not be empty"]
    assert found(Step("", work)) == ["'#1': the node id must not be empty"]
    assert of_step(name="\t") == [
        "'a': the step name must not begin or end with white space"
    ]
    assert of_step(revision="") == ["'a': the revision must not be empty"]
    assert of_step(listeners=[StepListener("", before=work, revision="r" * 129)]) == [
        "'a': the listener name must not be empty",
        "'a': the listener revision has 129 bytes, at most 128 are allowed",
    ]
    assert of_then({"*": COMPLETE, "": COMPLETE}) == [
        "'a': the exit pattern must not be empty"
    ]


@pytest.mark.parametrize("part", ["reader", "processor", "writer", "checkpoint"])
def test_each_revision_of_a_chunk_is_checked(part: str) -> None:
    reasons = of_chunk(**{f"{part}_revision": ""})
    assert reasons == [f"'a': the {part} revision must not be empty"]


@pytest.mark.parametrize("number", [0, -1, 2**32, True, "5", 1.0])
def test_counts_are_whole_numbers_of_32_bits(number: Any) -> None:
    for what, reasons in {
        "start limit": of_step(start_limit=number),
        "chunk size": of_chunk(size=number),
        "input version": found(
            Decision("a", work, then={"*": STOP}, input_version=number)
        ),
    }.items():
        (reason,) = reasons
        assert reason.startswith(f"'a': the {what} must be ")


def test_settings_of_a_step_are_checked() -> None:
    assert of_step(allow_start_if_complete=1) == [
        "'a': allow_start_if_complete must be a bool, not int"
    ]
    assert of_step(grace=-0.5) == ["'a': grace must be at least 0 seconds, not -0.5"]
    assert of_step(grace=float("nan")) == [
        "'a': grace must be at least 0 seconds, not nan"
    ]
    assert of_step(grace="1") == ["'a': grace must be seconds, not str"]
    assert of_step(on_stop="kill") == ["'a': on_stop must be 'cancel' or 'cooperate'"]
    assert of_chunk(in_flight="drop") == [
        "'a': in_flight must be 'finish_chunk' or 'rollback_chunk'"
    ]


@pytest.mark.parametrize(
    ("timeout", "wrong"),
    [
        (0, "must be more than 0 and at most 1,000,000,000 seconds, not 0"),
        (-0.5, "must be more than 0 and at most 1,000,000,000 seconds, not -0.5"),
        (
            float("nan"),
            "must be more than 0 and at most 1,000,000,000 seconds, not nan",
        ),
        (
            float("inf"),
            "must be more than 0 and at most 1,000,000,000 seconds, not inf",
        ),
        (True, "must be seconds or None, not bool"),
        ("1", "must be seconds or None, not str"),
    ],
)
def test_a_timeout_is_some_time(timeout: Any, wrong: str) -> None:
    assert of_step(timeout=timeout) == [f"'a': timeout {wrong}"]
    chunk = Chunk(Reader(), Writer())
    assert of_step(do=chunk, timeout=timeout) == [f"'a': timeout {wrong}"]
    assert found(Step("a", work), timeout=timeout) == [f"timeout {wrong}"]
    parts = PartitionedStep("p", work, work, timeout=timeout)
    assert found(parts) == [f"'p': timeout {wrong}"]
    inside = PartitionedStep("p", Step("a", work, timeout=timeout), work)
    assert found(inside) == [f"'a': timeout {wrong}"]
    branches = [Step("a", work, timeout=timeout), Step("b", work)]
    assert found(Step("x", work), Split("s", branches)) == [f"'a': timeout {wrong}"]


@pytest.mark.parametrize("timeout", [None, 1, 0.001, 1e9])
def test_a_timeout_is_no_part_of_the_definition(timeout: float | None) -> None:
    def plan(**settings: Any) -> CompiledJob:
        parts = PartitionedStep("p", Step("w", work, **settings), work, **settings)
        return compile_job(Job("j", [Step("a", work, **settings), parts], **settings))

    timed, untimed = plan(timeout=timeout), plan()
    assert timed.plan == untimed.plan
    assert timed.revision == untimed.revision


async def endless(ctx: object) -> Any:
    yield ctx


def test_work_must_be_a_function_or_a_chunk() -> None:
    assert of_step(do=5) == ["'a': the work must be a function, not int"]
    assert of_step(do=endless) == [
        "'a': the work is a generator function, which would never run"
    ]


def test_a_coroutine_in_place_of_its_function_is_recognised() -> None:
    async def download(ctx: object) -> None: ...

    called = download(None)
    assert of_step(do=called) == [
        "'a': the work is a coroutine: give download itself, do not call it"
    ]
    called.close()


def test_other_functions_must_be_functions() -> None:
    assert found(Decision("a", cast("Any", None), then={"*": STOP})) == [
        "'a': the decider must be a function, not NoneType"
    ]
    assert of_step(write="rows") == [
        "'a': the write function must be a function, not str"
    ]
    assert of_chunk(processor=3) == ["'a': the processor must be a function, not int"]


def test_reader_and_writer_need_their_methods() -> None:
    assert of_chunk(reader=[1, 2], writer=print) == [
        "'a': the reader of type list has no method open, read, state, close",
        "'a': the writer of type builtin_function_or_method has no method "
        "open, write, close",
        "'a': the writer's delivery must be Delivery.ATOMIC or Delivery.AT_LEAST_ONCE, "
        "not nothing",
    ]
    assert of_chunk(reader=Reader) == [
        "'a': the reader is the class Reader: give an instance of it"
    ]


def test_a_delivery_given_as_text_is_shown_and_the_right_words_are_named() -> None:
    class Texting(Writer):
        delivery = "at_least_once"  # type: ignore[assignment]

    assert of_chunk(writer=Texting()) == [
        "'a': the writer's delivery must be Delivery.ATOMIC or Delivery.AT_LEAST_ONCE, "
        "not the text 'at_least_once'"
    ]


def test_an_atomic_writer_must_not_be_async() -> None:
    assert of_chunk(writer=AsyncAtomicWriter()) == [
        "'a': the writer is atomic, so its write runs inside the store's transaction "
        "and must not be async"
    ]
    assert of_chunk(writer=ElsewhereWriter()) == []


def test_settings_of_tasklets_are_refused_on_a_chunk() -> None:
    reasons = of_step(
        do=Chunk(Reader(), Writer()), write=work, revision="2", on_stop="cooperate"
    )
    assert [reason.split(" is for ")[0] for reason in reasons] == [
        "'a': write=",
        "'a': revision=",
        "'a': on_stop=",
    ]


def test_restartable_is_yes_or_no() -> None:
    assert of_step(restartable=1) == ["'a': restartable must be a bool, not int"]
    assert found(Step("a", work), restartable=None) == [
        "restartable must be a bool, not NoneType"
    ]


def test_job_listeners_are_checked() -> None:
    def of_job(*listeners: object) -> list[str]:
        return found(Step("a", work), listeners=listeners)

    assert of_job(JobListener("audit")) == [
        "the listener 'audit' has neither before nor after"
    ]
    assert of_job(JobListener("", before=work, revision="r" * 129)) == [
        "the listener name must not be empty",
        "the listener revision has 129 bytes, at most 128 are allowed",
    ]
    assert of_job(JobListener("audit", after=cast("Any", 1))) == [
        "the after of listener 'audit' must be a function, not int"
    ]
    assert of_job(StepListener("audit", after=work)) == [
        "a listener must be a JobListener, not StepListener"
    ]
    assert of_job(*[JobListener("audit", before=work)] * 33) == [
        "there are 33 listeners, at most 32 are allowed"
    ]


def test_listeners_are_checked() -> None:
    assert of_step(listeners=[StepListener("audit")]) == [
        "'a': the listener 'audit' has neither before nor after"
    ]
    assert of_step(listeners=[StepListener("audit", after=cast("Any", 1))]) == [
        "'a': the after of listener 'audit' must be a function, not int"
    ]
    assert of_step(listeners=[work]) == [
        "'a': a listener must be a StepListener, not function"
    ]
    many = [StepListener("audit", before=work)] * 33
    assert of_step(listeners=many) == [
        "'a': there are 33 listeners, at most 32 are allowed"
    ]


def test_ids_and_step_names_are_unique() -> None:
    assert found(Step("a", work), Step("b", work), Step("a", work, name="c")) == [
        "'a': is the id of two nodes, 1 and 3"
    ]
    assert found(Step("a", work, name="n"), Step("b", work, name="n")) == [
        "'b': its step name is also that of 'a'"
    ]


def test_a_node_must_be_a_node() -> None:
    steps = cast("Iterable[Node]", [Step("a", work), work])
    assert problems_of(Job("j", steps)) == [
        "node 2 must be a Step, a Decision, a Split or a PartitionedStep, not function"
    ]


@pytest.mark.parametrize(
    ("target", "hint"),
    [
        ("lod", ": did you mean 'load'?"),
        ("COMPLETED", ": did you mean the constant COMPLETE?"),
        ("complete", ": did you mean the constant COMPLETE?"),
        ("failed", ": did you mean the constant FAIL?"),
        ("quux", ""),
    ],
)
def test_an_unknown_target_is_named_with_what_was_meant(target: str, hint: str) -> None:
    reasons = of_then({"YES": target, "NO": "load"}, Step("load", work))
    assert reasons == [
        f"'a': 'YES' leads to {target!r}, which is no node of this job{hint}"
    ]


def test_a_misspelt_target_is_reported_once() -> None:
    """The node that it meant is not called unreachable on top of that."""
    (reason,) = of_then({"*": "lod"}, Step("load", work))
    assert "did you mean 'load'" in reason


def test_targets_and_patterns_have_their_types() -> None:
    assert of_then({"YES": 5, "*": STOP}) == [
        "'a': the target of 'YES' must be a node id, COMPLETE, FAIL, STOP or a Stop, "
        "not int"
    ]
    assert of_then({5: STOP, "*": STOP}) == [
        "'a': a pattern of then must be text, not int"
    ]


def test_a_decision_needs_rules() -> None:
    assert of_then({}) == ["'a': leads nowhere: no exit code has a target"]


def test_a_step_whose_success_leads_nowhere_is_refused() -> None:
    needed = "'a': success leads nowhere: then replaces the default, so it needs a '*'"
    assert of_step(then={}) == [needed]
    assert of_step(then={"FAILED": STOP}) == [needed]
    assert of_step(do=Chunk(Reader(), Writer()), then={"PART": STOP}) == [
        "'a': a chunk ends with COMPLETED, which no pattern of then matches"
    ]


def test_ambiguous_patterns_are_named() -> None:
    assert of_then({"pr?x": STOP, "pre*": STOP, "*": STOP}) == [
        "'a': the patterns 'pr?x' and 'pre*' are equally specific, and some exit "
        "codes match both"
    ]
    assert of_then({"?a": STOP, "b*": COMPLETE}) != []
    assert of_then({"?a": STOP, "?b": COMPLETE}) == []


def test_cycles_are_refused_with_their_path() -> None:
    assert of_then({"*": "a"}) == [
        "'a': leads back to itself without a limit: 'a' -> 'a'; "
        "give one of these nodes a visit_limit="
    ]
    loop = [decision("b", YES="c"), decision("c", AGAIN="b", OUT="a", NO=COMPLETE)]
    assert found(decision("a", YES="b"), *loop) == [
        "'b': leads back to itself without a limit: 'b' -> 'c' -> 'b'; "
        "give one of these nodes a visit_limit=",
        "'a': leads back to itself without a limit: 'a' -> 'b' -> 'c' -> 'a'; "
        "give one of these nodes a visit_limit=",
    ]


def test_a_long_cycle_does_not_exhaust_the_stack() -> None:
    steps = [Step(str(number), work) for number in range(1000)]
    (reason,) = found(*steps, Step("last", work, then={"*": "0"}))
    assert reason.count("->") == 1001


def test_a_node_that_nothing_leads_to_is_named() -> None:
    """C012: a step after a decision that has no rule leading to it."""
    assert found(decision("a", END=COMPLETE), Step("X", work)) == [
        "'X': is never reached from the entry 'a'"
    ]


def test_the_size_of_a_graph_is_limited() -> None:
    steps = [Step(str(number), work) for number in range(1025)]
    assert found(*steps) == ["there are 1025 nodes, at most 1024 are allowed"]
    codes = {f"{number:02}": COMPLETE for number in range(63)}
    wide = [
        Decision(f"{n:02}", work, then={**codes, "*": f"{n + 1:02}"}) for n in range(64)
    ]
    assert found(*wide, Step("64", work)) == [
        "there are 4098 transitions, at most 4096 are allowed"
    ]
    assert of_then({**codes, "A": STOP, "*": STOP}) == [
        "'a': has 65 transitions, at most 64 are allowed"
    ]


def test_the_size_of_a_manifest_is_limited() -> None:
    many = [
        StepListener("audit", before=work, revision=f"{number:0128}")
        for number in range(32)
    ]
    steps = [Step(str(number), work, listeners=many) for number in range(250)]
    (reason,) = found(*steps)
    assert reason.startswith("its manifest has 1")
    assert reason.endswith("bytes, at most 1048576 may be")


@pytest.mark.parametrize(
    ("parameter", "reason"),
    [
        (Parameter("", str), "parameter 1: the parameter name must not be empty"),
        (
            Parameter("triolet.run", int),
            "parameter 'triolet.run' may not start with 'triolet.'",
        ),
        (
            Parameter("x", cast("Any", float)),
            "the type of parameter 'x' must be str, int or bool",
        ),
        (
            Parameter("x", int, default=True),
            "the default of parameter 'x' must be int, not bool",
        ),
        (
            Parameter("x", int, default=2**64),
            "the default of parameter 'x' is an integer of more than 64 bits",
        ),
        (
            Parameter("x", str, default=cast("Any", None)),
            "the default of parameter 'x' must be str, not NoneType",
        ),
        ("day", "parameter 1 must be a Parameter, not str"),
    ],
)
def test_declared_parameters_are_checked(parameter: Any, reason: str) -> None:
    assert found(Step("a", work), parameters=[parameter]) == [reason]


def test_a_parameter_is_declared_once() -> None:
    twice = [Parameter("x", int), Parameter("x", str)]
    assert found(Step("a", work), parameters=twice) == [
        "parameter 'x' is declared twice"
    ]


def test_a_secret_may_have_a_default() -> None:
    secret = Parameter("token", str, default="", secret=True)
    assert found(Step("a", work), parameters=[secret]) == []


def test_all_mistakes_are_reported_at_once() -> None:
    steps: list[Node] = [
        Step("load", work, start_limit=0, then={"*": "choose"}, grace=-1),
        Decision("choose", work, then={"A": "repot", "?": STOP, "*": COMPLETE}),
        Step("report", Chunk(Reader(), Writer(), size=0)),
        Step("lost", work, then={"*": "load"}),
        Step("report", work),
    ]
    with pytest.raises(DefinitionError) as caught:
        compile_job(Job("nightly", steps, parameters=[Parameter("x", cast("Any", 1))]))
    assert caught.value.job == "nightly"
    places = [problem.node for problem in caught.value.problems]
    assert sorted(place or "" for place in places) == sorted(
        ["", "report", "load", "load", "report", "choose", "choose", "load", "#5"]
    )
    assert all(isinstance(problem, Problem) for problem in caught.value.problems)
    assert "job 'nightly' has 9 mistakes: " in str(caught.value)
