"""The compiler: what a sound job becomes, and the routes through it."""

from itertools import permutations
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from triolet.actors.plan.compile import compile_job
from triolet.actors.plan.definition import (
    COMPLETE,
    FAIL,
    STOP,
    Chunk,
    Decision,
    Job,
    Parameter,
    Step,
    StepListener,
)
from triolet.actors.plan.plan import ChunkDeclaration, DeliveryMode, StepNode
from triolet.storage.model.execution import NodeTarget, Target, Terminal

from .definitions import ElsewhereWriter, Reader, Writer, jobs, problems_of, work


def select(then: dict[str, str | Terminal], code: str) -> Target | None:
    job = Job("j", [Decision("a", work, then=then), Step("b", work), Step("c", work)])
    return compile_job(job).plan.select("a", code)


def test_nodes_follow_each_other_and_a_failure_ends_the_job() -> None:
    plan = compile_job(Job("j", [Step("a", work), Step("b", work)])).plan
    assert plan.entry == "a"
    assert plan.select("a", "COMPLETED") == NodeTarget("b")
    assert plan.select("a", "PART") == NodeTarget("b")
    assert plan.select("a", "FAILED") is FAIL
    assert plan.select("b", "COMPLETED") is COMPLETE
    assert plan.patterns("a") == ("FAILED", "*")


def test_then_replaces_the_default_and_keeps_the_rule_for_failure() -> None:
    first = Step("a", work, then={"PART": "c", "COMPLETED": "b"})
    plan = compile_job(Job("j", [first, Step("b", work), Step("c", work)])).plan
    assert plan.patterns("a") == ("COMPLETED", "FAILED", "PART")
    assert plan.select("a", "FAILED") is FAIL
    assert plan.select("a", "OTHER") is None


def test_only_the_exact_key_failed_replaces_the_rule_for_failure() -> None:
    wild = Step("a", work, then={"F*": STOP, "*": "b"})
    plan = compile_job(Job("j", [wild, Step("b", work)])).plan
    assert plan.select("a", "FAILED") is FAIL
    exact = Step("a", work, then={"FAILED": "b", "*": "b"})
    plan = compile_job(Job("j", [exact, Step("b", work)])).plan
    assert plan.select("a", "FAILED") == NodeTarget("b")


def test_a_decision_has_no_defaults() -> None:
    assert select({"YES": "b", "NO": "b"}, "FAILED") is None


def test_a_node_may_be_called_like_a_terminal() -> None:
    plan = compile_job(Job("j", [Step("a", work), Step("fail", work)])).plan
    assert plan.select("a", "COMPLETED") == NodeTarget("fail")
    assert plan.select("a", "FAILED") is FAIL


C002 = ["pref", "pre*", "pr?x", "*x", "?", "*", "**"]
TIES = {frozenset({"pre*", "pr?x"}), frozenset({"?", "*"})}


@pytest.mark.parametrize(("first", "second"), list(permutations(C002, 2)))
def test_the_order_of_rules_never_matters(first: str, second: str) -> None:
    """C002: one winner in both orders, or a tie that names both patterns."""
    order = [{first: "b", second: "c"}, {second: "c", first: "b"}]
    if frozenset({first, second}) in TIES:
        for then in order:
            job = Job("j", [Decision("a", work, then=then), Step("b", work)])
            (reason,) = [one for one in problems_of(job) if "equally" in one]
            assert repr(first) in reason
            assert repr(second) in reason
        return
    rank = {pattern: place for place, pattern in enumerate(C002)}
    winner = "b" if rank[first] < rank[second] else "c"
    for code in ("pref", "prex", "x", "y"):
        found = [select(then, code) for then in order]
        assert found[0] == found[1]
        takers = {one for one in (first, second) if _takes(one, code)}
        if len(takers) == 2:
            assert found[0] == NodeTarget(winner)


def _takes(pattern: str, code: str) -> bool:
    return select({pattern: "b", "zz": "b"}, code) is not None


def test_a_chunk_is_declared_with_its_revisions_and_delivery() -> None:
    chunk = Chunk(Reader(), ElsewhereWriter(), size=7, writer_revision="w2")
    node = compile_job(Job("j", [Step("a", chunk)])).plan.nodes["a"]
    assert isinstance(node, StepNode)
    assert isinstance(node.declaration, ChunkDeclaration)
    assert node.declaration.size == 7
    assert node.declaration.delivery is DeliveryMode.AT_LEAST_ONCE
    assert node.declaration.writer_revision == "w2"
    assert node.declaration.checkpoint.id == "triolet.position"


def test_a_listener_may_turn_the_exit_of_a_chunk() -> None:
    turns = StepListener("turns", after=work)
    step = Step(
        "a", Chunk(Reader(), Writer()), then={"PART": COMPLETE}, listeners=[turns]
    )
    assert compile_job(Job("j", [step])).plan.patterns("a") == ("FAILED", "PART")


def test_the_bindings_are_the_users_own_nodes() -> None:
    step = Step("a", work)
    choice = Decision("b", work, then={"*": COMPLETE})
    parameter = Parameter("day", str)
    job = Job("j", [step, choice], parameters=[parameter])
    compiled = compile_job(job)
    assert compiled.job == "j"
    assert compiled.steps == {"a": step}
    assert compiled.decisions == {"b": choice}
    assert compiled.parameters == (parameter,)


def test_a_definition_without_a_label_is_labelled_by_its_fingerprint() -> None:
    compiled = compile_job(Job("j", [Step("a", work)]))
    assert compiled.revision == compiled.plan.fingerprint.hex()[:12]
    assert compile_job(Job("j", [Step("a", work)], revision="3")).revision == "3"


def test_labels_budgets_and_parameters_are_not_in_the_fingerprint() -> None:
    plain = compile_job(Job("j", [Step("a", work)])).plan
    other = Job(
        "j",
        [Step("a", lambda ctx: None, grace=1, on_stop="cooperate", write=work)],
        revision="9",
        parameters=[Parameter("n", int, default=1)],
    )
    assert compile_job(other).plan == plain


@given(jobs(), st.randoms(use_true_random=False))
def test_the_order_of_declaration_is_not_in_the_fingerprint(
    job: Job, random: Random
) -> None:
    first, *rest = job.steps
    random.shuffle(rest)
    shuffled = compile_job(Job(job.name, [first, *rest])).plan
    assert shuffled == compile_job(job).plan
    assert shuffled.fingerprint == compile_job(job).plan.fingerprint


@given(jobs(), st.sampled_from(["FAILED", "PART", "Q", "Q1", "TO 1", "other"]))
def test_the_first_pattern_in_order_that_matches_is_selected(
    job: Job, code: str
) -> None:
    plan = compile_job(job).plan
    for node, transitions in plan.transitions.items():
        expected = next(
            (one.target for one in transitions if one.matcher.matches(code)), None
        )
        assert plan.select(node, code) == expected


def test_a_plan_as_large_as_allowed_compiles() -> None:
    steps = [Step(f"{number:04}", work) for number in range(1024)]
    assert len(compile_job(Job("j", steps)).plan.nodes) == 1024
