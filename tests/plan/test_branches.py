"""Branches that are flows of their own: what they compile to, and what is refused."""

import json
from typing import Any

import pytest

from triolet.actors.plan.branching import PartitionedStep, Split
from triolet.actors.plan.changes import describe_changes
from triolet.actors.plan.compile import compile_job
from triolet.actors.plan.definition import COMPLETE, FAIL, STOP, Decision, Job, Node
from triolet.actors.plan.manifest import read_manifest
from triolet.actors.plan.mermaid import mermaid_lines
from triolet.actors.plan.plan import DecisionNode, Graph, Plan, SplitNode
from triolet.actors.plan.steps import Chunk, Step
from triolet.storage.envelope import canonical_json
from triolet.storage.model.errors import CorruptRecord
from triolet.storage.model.execution import NodeTarget, Stop

from .definitions import Reader, Writer, problems_of, work


def step(name: str, **settings: Any) -> Step:
    return Step(name, work, **settings)


def decision(name: str, **then: Any) -> Decision:
    return Decision(name, work, then=then)


FLOW: list[Node] = [
    step("b1", then={"*": "b2", "FAILED": "b4"}),
    decision("b2", BIG="b3", SMALL=COMPLETE, ODD=FAIL),
    step("b3", then={"*": COMPLETE}),
    step("b4"),
]


def job(*branches: Any, **settings: Any) -> Job:
    return Job("j", [step("a"), Split("s", branches, **settings), step("z")])


def plan(*branches: Any) -> Plan:
    return compile_job(job(*branches)).plan


def found(*branches: Any) -> list[str]:
    return problems_of(job(*branches))


# What they become


def test_a_branch_with_rules_is_a_graph() -> None:
    one = plan(FLOW, step("c"))
    split = one.nodes["s"]
    assert isinstance(split, SplitNode)
    flow, line = split.branches
    assert isinstance(flow, Graph)
    assert (flow.entry, [*flow.nodes]) == ("b1", ["b1", "b2", "b3", "b4"])
    assert not isinstance(line, Graph)
    assert one.every["b2"] == DecisionNode("b2", "1")
    assert one.select("b1", "PART") == NodeTarget("b2")
    assert one.select("b1", "FAILED") == NodeTarget("b4")
    assert one.select("b2", "ODD") is FAIL
    assert one.select("b2", "else") is None
    assert one.select("b4", "COMPLETED") is COMPLETE  # and not z
    assert one.patterns("b2") == ("SMALL", "BIG", "ODD")


def test_steps_without_rules_stay_a_line_of_format_3() -> None:
    assert plan([step("b"), step("c")], step("d")).format == 3
    assert plan([step("b", then={"*": COMPLETE})], step("d")).format == 4
    long = [step(f"b{number}") for number in range(9)]
    assert plan(long[:8], step("d")).format == 3
    assert plan(long, step("d")).format == 4


def test_the_code_of_all_depths_is_bound() -> None:
    compiled = compile_job(job(FLOW, step("c")))
    assert [*compiled.steps] == ["a", "b1", "b3", "b4", "c", "z"]
    assert [*compiled.decisions] == ["b2"]


def test_a_manifest_holds_the_graph_of_a_branch() -> None:
    one = plan(FLOW, step("c"))
    assert read_manifest(one.manifest) == one
    split = json.loads(one.manifest)["nodes"][1]
    flow, line = split["branches"]
    assert flow["entry"] == "b1"
    assert [node["id"] for node in flow["nodes"]] == ["b1", "b2", "b3", "b4"]
    assert flow["transitions"][0] == {
        "pattern": "FAILED",
        "source": "b1",
        "target": {"node": "b4"},
    }
    assert [node["id"] for node in line] == ["c"]


def test_the_fingerprint_of_a_flow_stays() -> None:
    assert plan(FLOW, step("c")).fingerprint.hex() == FINGERPRINT


FINGERPRINT = "39f277692c857b70579e6ce7cc098e7a83daf9b7d34b84646dceb9b2bedcf829"


def test_a_partitioned_step_in_a_branch_routes_like_a_step() -> None:
    parts = PartitionedStep("p", work, work, 3, then={"PART": STOP, "*": "b"})
    one = plan([parts, step("b")], step("c"))
    assert one.format == 4
    assert read_manifest(one.manifest) == one
    assert one.select("p", "PART") is STOP
    assert one.select("p", "FAILED") is FAIL
    assert [*one.embedded] == ["p", "p.worker", "b", "c"]
    compiled = compile_job(job([parts, step("b")], step("c")))
    assert [*compiled.partitioned] == ["p"]
    assert "p.worker" in compiled.steps
    assert '    n4[["p: 3 x p.worker"]]' in list(mermaid_lines(one))


# Mistakes


def test_rules_stay_in_their_branch() -> None:
    reason = "is not in the same branch: lead to a node of the branch, or end it"
    for target in ("z", "c", "s", "s.join"):
        (problem,) = found([step("b", then={"*": target})], step("c"))
        assert problem.startswith(f"'b': '*' leads to {target!r}, which {reason}")
    assert found([step("b", then={"*": "y"})], step("c")) == [
        "'b': '*' leads to 'y', which is no node of this job"
    ]


def test_nodes_of_a_branch_are_reached_once() -> None:
    assert found([step("b1", then={"*": COMPLETE}), step("b2")], step("c")) == [
        "'b2': is never reached from the entry 'b1'"
    ]
    loop = [step("b1"), decision("b2", AGAIN="b1", ON=COMPLETE)]
    assert found(loop, step("c")) == [
        "'b1': leads back to itself, which is not allowed in a branch: 'b1' -> 'b2' -> 'b1'"
    ]


def test_nodes_of_a_branch_are_checked_like_others() -> None:
    wrong: Any = 5
    assert found([Decision("b", wrong, then={"??": STOP, "*": "z"})], step("c")) == [
        "'b': the decider must be a function, not int",
        "'b': '*' leads to 'z', which is not in the same branch: lead to a node of the "
        "branch, or end it with COMPLETE, FAIL or STOP",
    ]
    assert found([step("b", then={"FAILED": STOP})], step("c")) == [
        "'b': success leads nowhere: then replaces the default, so it needs a '*'"
    ]
    assert found([step("a"), decision("d", X=STOP)], step("c")) == [
        "'a': is the id of two nodes, 1 and 2 (branch 1, step 1)"
    ]


def nested(depth: int) -> Split:
    inner: Any = nested(depth - 1) if depth > 1 else step("deep")
    return Split(f"s{depth}", [inner, step(f"o{depth}")])


def test_splits_stand_in_each_other_at_most_5_deep() -> None:
    deep = compile_job(Job("j", [step("a"), nested(5)])).plan
    assert deep.format == 4
    assert read_manifest(deep.manifest) == deep
    assert problems_of(Job("j", [step("a"), nested(6)])) == [
        "'s2': holds a split, but splits may stand in each other at most 5 deep"
    ]


def test_nobody_leads_into_an_inner_split() -> None:
    inner = Split("i", [step("i1"), step("i2")])
    rules = {"X": "i1", "Y": "i.join", "*": "i"}
    assert found([step("b", then=rules), inner], step("c")) == [
        "'b': 'X' leads to 'i1', which is inside 'i': lead to 'i'",
        "'b': 'Y' leads to 'i.join', which is inside 'i': lead to 'i'",
    ]
    (problem,) = found([inner, step("b")], step("c", then={"*": "i1"}))
    assert problem.startswith("'c': '*' leads to 'i1', which is not in the same branch")


def test_branches_at_any_depth_share_no_reader() -> None:
    chunk = Chunk(Reader(), Writer())
    inner = Split("i", [Step("i1", chunk), step("i2")])
    shared = Step("c", Chunk(chunk.reader, Writer()))
    (problem,) = found([step("b"), inner], shared)
    assert problem.startswith("'s': 'i1' and 'c' share a reader")


# Mistakes that only a stored plan can hold


def damaged(**changes: Any) -> str:
    document = json.loads(plan(FLOW, step("c")).manifest)
    document["nodes"][1]["branches"][0].update(changes)
    with pytest.raises(CorruptRecord) as caught:
        read_manifest(canonical_json(document))
    return caught.value.reason


def test_a_stored_branch_is_checked() -> None:
    assert damaged(entry="b") == "the entry 'b' is no node"
    assert damaged(nodes=5) == "a member is missing or of the wrong type"
    assert damaged(budget=1) == "it is not in canonical form"
    join = {"id": "b9", "kind": "join"}
    assert damaged(nodes=[join], entry="b9", transitions=[]).startswith(
        "'s': branch 1 must have 1 to 32 nodes, not 0"
    )


@pytest.mark.parametrize("depth", [6, 150, 220, 240, 260, 400, 4000])
def test_a_manifest_that_is_nested_too_deeply_is_refused(depth: int) -> None:
    begin = (
        '{"kind":"split","id":"s","join":"m","failure_policy":"cancel_siblings",'
        '"branches":[{"entry":"s","transitions":[],"nodes":['
    )
    text = '{"format":4,"job":"j","entry":"s","transitions":[],"nodes":['
    text += begin * depth + "]}]}" * depth + "]}"
    with pytest.raises(CorruptRecord):
        read_manifest(text)


# What people are shown


def test_a_branch_with_rules_leads_to_the_join_where_it_ends() -> None:
    lines = list(mermaid_lines(plan(FLOW, step("c"))))
    assert [line for line in lines if "n4" in line or "n5" in line] == [
        '    n4["b1"]',
        '    n5{"b2"}',
        '  n4 -->|"FAILED"| n7',
        '  n4 -->|"*"| n5',
        '  n5 -->|"SMALL"| n2',
        '  n5 -->|"BIG"| n6',
        '  n5 -->|"ODD: FAIL"| n2',
    ]
    assert '  n6 -->|"*"| n2' in lines
    assert '  n6 -->|"FAILED: FAIL"| n2' in lines


def test_an_inner_split_is_a_frame_in_a_frame() -> None:
    inner = Split("i", [step("i1"), step("i2")])
    lines = list(mermaid_lines(plan([inner, step("b")], step("c"))))
    assert lines[3:16] == [
        '  subgraph n1["s"]',
        '    subgraph n4["i"]',
        '      n5["i1"]',
        '      n6["i2"]',
        "    end",
        "    n4 --> n7",
        '    n7{{"i.join"}}',
        '    n8["b"]',
        '    n9["c"]',
        "  end",
        "  n1 --> n2",
        '  n2{{"s.join"}}',
        '  n3["z"]',
    ]
    assert '  n7 -->|"*"| n8' in lines
    assert '  n7 -->|"FAILED: FAIL"| n2' in lines


def test_changes_within_a_branch_are_told() -> None:
    before = plan(FLOW, step("c"))
    after = plan(
        [FLOW[0], decision("b2", BIG="b3", SMALL=STOP, ODD=FAIL), *FLOW[2:]], step("c")
    )
    assert describe_changes(before.manifest, after.manifest) == (
        "decision 'b2': 'SMALL' goes to STOP instead of COMPLETE",
    )
    longer = plan([*FLOW, step("b5")], step("c"))
    assert describe_changes(before.manifest, longer.manifest) == (
        "step 'b4': '*' goes to 'b5' instead of COMPLETE",
        "node 'b5' was added",
        "split 's': branches [['b1', 'b2', 'b3', 'b4'], ['c']] -> "
        "[['b1', 'b2', 'b3', 'b4', 'b5'], ['c']]",
    )


def test_loops_and_splits_that_resume_elsewhere_have_lines_only() -> None:
    limited = Step("b1", work, visit_limit=2)
    assert found([limited, step("b2")], step("c")) == [
        "'b1': visit_limit= has no effect inside of a split or a partitioned step: give "
        "it to that node"
    ]
    resuming = job(FLOW, step("c"), then={"*": Stop(resume_at="z")})
    assert problems_of(resuming) == [
        "'s.join': '*' resumes elsewhere, which a split cannot of which a branch has "
        "rules of its own: lead to a decision that does"
    ]
