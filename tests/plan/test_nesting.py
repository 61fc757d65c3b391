"""Splits and partitioned steps: what they compile to, and every mistake in them."""

from collections.abc import Callable
from typing import Any

import pytest
from attrs import evolve

from triolet.actors.plan.compile import compile_job
from triolet.actors.plan.definition import (
    COMPLETE,
    FAIL,
    STOP,
    Chunk,
    Decision,
    FailurePolicy,
    Job,
    Node,
    PartitionedStep,
    Split,
    Step,
    StepListener,
)
from triolet.actors.plan.graph import Graph, problems_of
from triolet.actors.plan.plan import (
    JoinNode,
    PartitionedNode,
    Plan,
    PlanNode,
    SplitNode,
    StepNode,
    TaskletDeclaration,
    Transition,
    nodes_of,
)
from triolet.storage.model.execution import NodeTarget, Target

from .definitions import Reader, Writer, work
from .definitions import problems_of as mistakes_of

FIRST = Step("a", work)
LEFT = Step("l", work)
RIGHT = Step("r", work)


def found(*nodes: object) -> list[str]:
    given: Any = nodes
    return mistakes_of(Job("j", [FIRST, *given]))


def of_split(branches: Any, *others: Node, **settings: Any) -> list[str]:
    return found(Split("p", branches, **settings), *others)


def of_partitioned(worker: Any = work, **settings: Any) -> list[str]:
    fields: dict[str, Any] = {"planner": work, "partitions": 3, **settings}
    return found(PartitionedStep("p", worker, **fields))


def many(count: int, prefix: str = "s") -> list[Step]:
    return [Step(f"{prefix}{number}", work) for number in range(count)]


def plan(*nodes: Node) -> Plan:
    return compile_job(Job("j", [FIRST, *nodes])).plan


# What they become


def test_a_split_leads_to_its_join_and_the_join_goes_on() -> None:
    found = plan(Split("p", [LEFT, [RIGHT, Step("r2", work)]]), Step("z", work))

    assert [*found.nodes] == ["a", "p", "p.join", "z"]
    assert found.select("a", "COMPLETED") == NodeTarget("p")
    assert found.select("p.join", "PART") == NodeTarget("z")
    assert found.select("p.join", "FAILED") is FAIL
    assert "p" not in found.transitions
    split = found.nodes["p"]
    assert isinstance(split, SplitNode)
    assert [[one.id for one in nodes_of(branch)] for branch in split.branches] == [
        ["l"],
        ["r", "r2"],
    ]
    assert split.failure_policy is FailurePolicy.CANCEL_SIBLINGS
    assert found.nodes[split.join] == JoinNode("p.join")
    assert [*found.embedded] == ["l", "r", "r2"]


def test_the_rules_of_a_split_are_those_of_its_join() -> None:
    split = Split("p", [LEFT, RIGHT], join="met", then={"HALF": STOP, "*": COMPLETE})
    found = plan(split)
    assert found.patterns("met") == ("FAILED", "HALF", "*")
    assert found.select("met", "HALF") is STOP


def test_a_partitioned_step_routes_like_a_step() -> None:
    worker = Step("w", work, name="one customer", revision="7")
    node = PartitionedStep("p", worker, work, 12, name="customers", start_limit=3)
    found = plan(node)

    assert found.patterns("p") == ("FAILED", "*")
    assert found.nodes["p"] == PartitionedNode(
        id="p",
        step_name="customers",
        worker=StepNode("w", "one customer", TaskletDeclaration("7")),
        partition_count=12,
        partitioner="1",
        aggregation="status-and-counts-v1",
        start_limit=3,
    )
    assert [*found.embedded] == ["w"]


def test_a_worker_that_is_mere_work_is_called_after_its_node() -> None:
    compiled = compile_job(Job("j", [PartitionedStep("p", work, work, 2)]))
    assert [*compiled.plan.embedded] == ["p.worker"]
    assert compiled.steps == {"p.worker": Step("p.worker", work)}
    node = compiled.partitioned["p"]
    assert (node.planner, node.max_workers, node.worker) == (
        work,
        4,
        Step("p.worker", work),
    )


def test_what_is_inside_is_bound_beside_the_steps() -> None:
    split = Split("p", [LEFT, RIGHT], join="met", max_parallel=2)
    node = PartitionedStep("q", Step("w", work), work, 2)
    compiled = compile_job(Job("j", [FIRST, split, node]))
    assert [*compiled.steps] == ["a", "l", "r", "w"]
    assert compiled.splits == {"p": split}
    assert compiled.partitioned == {"q": node}


def test_readers_and_writers_inside_are_components_of_the_job() -> None:
    chunks = [Chunk(Reader(), Writer()) for _ in range(3)]
    inside = [Step(name, chunk) for name, chunk in zip("lr", chunks, strict=False)]
    last = PartitionedStep("q", chunks[2], work, 2, factory=work)
    job = Job("j", [FIRST, Split("p", inside), last])
    parts = compile_job(job).components
    assert parts == tuple(
        part for chunk in chunks[:2] for part in (chunk.reader, chunk.writer)
    ), "a factory makes those of partitions anew"


def test_budgets_are_not_in_the_fingerprint() -> None:
    split = Split("p", [LEFT, RIGHT])
    node = PartitionedStep("q", work, work, 2)
    roomy = evolve(split, max_parallel=2), evolve(node, max_workers=64)
    assert plan(*roomy) == plan(split, node)


@pytest.mark.parametrize(
    "changed",
    [
        Split("p", [RIGHT, LEFT]),
        Split("p", [[LEFT, RIGHT], Step("m", work)]),
        Split("p", [LEFT, evolve(RIGHT, revision="2")]),
        Split("p", [LEFT, RIGHT], on_failure="drain_siblings"),
        Split("p", [LEFT, RIGHT], join="met"),
    ],
)
def test_all_else_of_a_split_is_in_the_fingerprint(changed: Split) -> None:
    before = plan(Split("p", [LEFT, RIGHT]))
    assert plan(changed).fingerprint != before.fingerprint


# Mistakes in splits


def test_a_job_cannot_begin_with_a_split() -> None:
    assert mistakes_of(Job("j", [Split("p", [LEFT, RIGHT])])) == [
        "'p': is the entry, but a job cannot begin with a split: put a step before"
    ]


@pytest.mark.parametrize("count", [0, 1, 9])
def test_the_number_of_branches_is_bounded(count: int) -> None:
    assert of_split(many(count)) == [
        f"'p': the number of branches must be 2 to 8, not {count}"
    ]


@pytest.mark.parametrize("count", [2, 8])
def test_as_many_branches_as_allowed_compile(count: int) -> None:
    assert of_split(many(count), max_parallel=count) == []


def test_the_length_of_a_branch_is_bounded() -> None:
    assert of_split([LEFT, []]) == ["'p': branch 2 must have 1 to 32 nodes, not 0"]
    assert of_split([many(33), LEFT]) == [
        "'p': branch 1 must have 1 to 32 nodes, not 33"
    ]
    assert of_split([many(32), LEFT]) == []


def test_a_branch_holds_nodes_only() -> None:
    words = "a Step, a Decision, a Split or a PartitionedStep"
    assert of_split([LEFT, [work, RIGHT]]) == [
        f"node 2 (branch 2, step 1) must be {words}, not function"
    ]
    assert of_split([work, RIGHT]) == [
        f"node 2 (branch 1, step 1) must be {words}, not function"
    ]


@pytest.mark.parametrize("budget", [0, 9, True, "2", 1.0])
def test_the_budget_of_a_split_is_checked(budget: Any) -> None:
    (reason,) = of_split([LEFT, RIGHT], max_parallel=budget)
    assert reason.startswith("'p': the budget max_parallel must be ")


def test_a_budget_is_not_larger_than_its_split() -> None:
    assert of_split([LEFT, RIGHT], max_parallel=3) == [
        "'p': max_parallel is 3, but there are 2 branches"
    ]


def test_an_unknown_policy_is_refused() -> None:
    reason = "'p': on_failure must be 'cancel_siblings' or 'drain_siblings'"
    assert of_split([LEFT, RIGHT], on_failure="wait") == [reason]
    assert of_partitioned(on_failure="wait") == [reason]


def test_ids_inside_are_not_shared() -> None:
    assert of_split([Step("a", work, name="n"), RIGHT]) == [
        "'a': is the id of two nodes, 1 and 2 (branch 1, step 1)"
    ]
    assert of_split([LEFT, [RIGHT, Step("l", work, name="n")]]) == [
        "'l': is the id of two nodes, 2 (branch 1, step 1) and 2 (branch 2, step 2)"
    ]
    assert of_split([LEFT, RIGHT], Step("r", work, name="n")) == [
        "'r': is the id of two nodes, 2 (branch 2, step 1) and 3"
    ]
    again = PartitionedStep("q", Step("l", work, name="n"), work, 2)
    assert of_split([LEFT, RIGHT], again) == [
        "'l': is the id of two nodes, 2 (branch 1, step 1) and 3 (worker)"
    ]


def test_the_id_of_a_join_is_its_own() -> None:
    assert of_split([LEFT, RIGHT], join="a") == [
        "'a': is the id of two nodes, 1 and 2 (join)"
    ]
    assert of_split([LEFT, RIGHT], join="p") == [
        "'p': is the id of two nodes, 2 and 2 (join)"
    ]
    assert of_split([LEFT, RIGHT], Step("p.join", work)) == [
        "'p.join': is the id of two nodes, 2 (join) and 3"
    ]
    other = Split("q", [Step("x", work), Step("y", work)], join="p.join")
    assert of_split([LEFT, RIGHT], other) == [
        "'p.join': is the id of two nodes, 2 (join) and 3 (join)"
    ]


def test_illegal_ids_are_found_at_their_place() -> None:
    long = "p" * 128
    assert found(Split(long, [Step("", work), RIGHT])) == [
        "'#2 (join)': the node id has 133 bytes, at most 128 are allowed",
        "'#2 (branch 1, step 1)': the node id must not be empty",
    ]
    assert found(PartitionedStep(long, work, work, 2)) == [
        "'#2 (worker)': the node id has 135 bytes, at most 128 are allowed"
    ]


def test_step_names_inside_are_not_shared() -> None:
    assert of_split([LEFT, Step("r", work, name="l")]) == [
        "'r': its step name is also that of 'l'"
    ]
    assert of_partitioned(name="a") == ["'p': its step name is also that of 'a'"]
    assert of_partitioned(Step("w", work, name="p")) == [
        "'w': its step name is also that of 'p'"
    ]


def test_no_transition_leads_inside() -> None:
    split = Split("p", [LEFT, RIGHT])
    for target in ("p.join", "l"):
        first = Step("a", work, then={"*": target})
        assert mistakes_of(Job("j", [first, split])) == [
            f"'a': '*' leads to {target!r}, which is inside 'p': lead to 'p'"
        ]
    first = Step("a", work, then={"*": "w"})
    node = PartitionedStep("p", Step("w", work), work, 2)
    assert mistakes_of(Job("j", [first, node])) == [
        "'a': '*' leads to 'w', which is inside 'p': lead to 'p'"
    ]


def test_a_split_is_reached_and_left_like_any_node() -> None:
    loop = Split("p", [LEFT, RIGHT], then={"*": "p"})
    assert found(loop) == [
        "'p': leads back to itself without a limit: 'p' -> 'p.join' -> 'p'; "
        "give one of these nodes a visit_limit="
    ]
    end = Step("a", work, then={"*": COMPLETE})
    assert mistakes_of(Job("j", [end, Split("p", [LEFT, RIGHT])])) == [
        "'p': is never reached from the entry 'a'"
    ]
    assert of_split([LEFT, RIGHT], then={"FAILED": STOP}) == [
        "'p': success leads nowhere: then replaces the default, so it needs a '*'"
    ]
    assert of_split([LEFT, RIGHT], then={"*": "b"}) == [
        "'p.join': '*' leads to 'b', which is no node of this job"
    ]


def test_steps_inside_are_checked_like_others() -> None:
    wrong: Any = 5
    assert of_split([Step("l", wrong), Step("r", work, start_limit=0)]) == [
        "'l': the work must be a function, not int",
        "'r': the start limit must be 1 to 4294967295, not 0",
    ]
    assert of_partitioned(Step("w", work, listeners=[StepListener("x")])) == [
        "'w': the listener 'x' has neither before nor after"
    ]
    assert of_partitioned(5) == ["'p.worker': the work must be a function, not int"]


def test_a_worker_has_no_rules() -> None:
    reason = "then= has no effect inside of a partitioned step: give it to that node"
    ruled = Step("r", work, then={"*": COMPLETE})
    assert of_partitioned(ruled) == [f"'r': {reason}"]


def test_branches_share_no_reader() -> None:
    reader = Reader()
    left, right = (Step(name, Chunk(reader, Writer())) for name in "lr")
    assert of_split([left, right]) == [
        "'p': 'l' and 'r' share a reader, but are in branches that run side by side: "
        "give each one its own"
    ]
    assert of_split([[left, right], Step("m", work)]) == []


def test_the_steps_inside_count_against_the_limit() -> None:
    splits = [
        Split(f"p{number}", [many(8, f"{number}l"), many(8, f"{number}r")])
        for number in range(57)
    ]
    assert found(*splits[:56]) == []
    assert found(*splits) == ["there are 1027 nodes, at most 1024 are allowed"]


# Mistakes in partitioned steps


@pytest.mark.parametrize("count", [0, -1, 1025, True, "3", 2.0])
def test_the_number_of_partitions_is_bounded(count: Any) -> None:
    (reason,) = of_partitioned(partitions=count)
    assert reason.startswith("'p': the number of partitions must be ")


@pytest.mark.parametrize("budget", [0, 65, True, "2"])
def test_the_budget_of_workers_is_bounded(budget: Any) -> None:
    (reason,) = of_partitioned(max_workers=budget)
    assert reason.startswith("'p': the budget max_workers must be ")


@pytest.mark.parametrize(("partitions", "workers"), [(1, 1), (1024, 64), (2, 64)])
def test_bounds_of_partitions_and_workers_are_included(
    partitions: int, workers: int
) -> None:
    assert of_partitioned(partitions=partitions, max_workers=workers) == []


@pytest.mark.parametrize(
    ("worker", "kind"),
    [
        (PartitionedStep("q", work, work, 2), "PartitionedStep"),
        (Split("q", [LEFT, RIGHT]), "Split"),
        (Decision("d", work, then={"*": STOP}), "Decision"),
    ],
)
def test_a_worker_is_a_step(worker: object, kind: str) -> None:
    assert of_partitioned(worker) == [f"'p': the worker must be a Step, not a {kind}"]


def test_the_settings_of_a_partitioned_step_are_checked() -> None:
    assert of_partitioned(
        planner=5,
        name="",
        start_limit=0,
        allow_start_if_complete=1,
        planner_revision="",
        aggregation_revision="",
    ) == [
        "'p': the planner must be a function, not int",
        "'p': the step name must not be empty",
        "'p': the start limit must be 1 to 4294967295, not 0",
        "'p': allow_start_if_complete must be a bool, not int",
        "'p': the planner revision must not be empty",
        "'p': the aggregation revision must not be empty",
    ]


def test_a_partition_that_completed_is_never_repeated() -> None:
    (reason,) = of_partitioned(Step("w", work, allow_start_if_complete=True))
    assert reason.startswith(
        "'p': allow_start_if_complete= of the worker has no effect"
    )


def test_all_mistakes_are_found_at_once() -> None:
    wrong: Any = 5
    reasons = found(
        Split("p", [[]], max_parallel=0, then={"FAILED": STOP}),
        PartitionedStep("p", Step("a", work), wrong, 0, max_workers=65),
        Decision("d", work, then={"*": "p.join"}),
    )
    assert [one.partition(": ")[0] for one in reasons] == [
        "'p'",  # is the id of two nodes
        "'a'",  # likewise
        "'p'",  # the budget
        "'p'",  # success leads nowhere
        "'#3'",  # the planner
        "'#3'",  # the budget
        "'#3'",  # the number of partitions
        "'p'",  # the number of branches
        "'p'",  # the length of a branch
        "'d'",  # leads inside
        "'#3'",  # never reached
        "'d'",  # likewise
    ]


# Mistakes that only a stored plan can hold

STEP = StepNode("a", "a", TaskletDeclaration("1"))
INNER = (StepNode("l", "l", TaskletDeclaration("1")),)
OTHER = (StepNode("r", "r", TaskletDeclaration("1")),)
SPLIT = SplitNode("p", (INNER, OTHER), "m")
Rules = dict[str, Target]
RULES: Rules = {"a": NodeTarget("p"), "m": COMPLETE}


def in_graph(nodes: list[PlanNode], rules: Rules, entry: str = "a") -> list[str]:
    transitions = {source: (Transition("*", to),) for source, to in rules.items()}
    graph = Graph(entry, {node.id: node for node in nodes}, transitions)
    return [str(problem) for problem in problems_of(graph)]


def test_a_sound_graph_has_no_problems() -> None:
    assert in_graph([STEP, SPLIT, JoinNode("m")], RULES) == []


Wrong = Callable[[], list[str]]


@pytest.mark.parametrize(
    ("wrong", "reason"),
    [
        (
            lambda: in_graph([STEP, SPLIT, evolve(STEP, id="m", name="m")], RULES),
            "'p': its join 'm' is no join",
        ),
        (
            lambda: in_graph([STEP, JoinNode("m")], {"a": COMPLETE, "m": COMPLETE}),
            "'m': is a join, but of no split",
        ),
        (
            lambda: in_graph(
                [STEP, SPLIT, JoinNode("m"), SplitNode("q", (INNER, OTHER), "m")],
                RULES,
            ),
            "'m': is the join of two splits, 'p' and 'q'",
        ),
        (
            lambda: in_graph([STEP, SPLIT, JoinNode("m")], RULES | {"p": COMPLETE}),
            "'p': is a split: its join has the transitions",
        ),
        (
            lambda: in_graph(
                [STEP, evolve(SPLIT, branches=(INNER, INNER)), JoinNode("m")], RULES
            ),
            "'l': is the id of another node, and of a step inside 'p'",
        ),
        (
            lambda: in_graph([STEP, SPLIT, JoinNode("m")], RULES, "m"),
            "'m': is the entry, but a job cannot begin with a split: put a step before",
        ),
    ],
)
def test_the_shape_of_a_stored_plan_is_checked(wrong: Wrong, reason: str) -> None:
    assert reason in wrong()


def test_a_chunk_as_worker_needs_a_factory() -> None:
    chunk = Chunk(Reader(), Writer())
    (problem,) = found(PartitionedStep("q", chunk, work, 2))
    assert "a chunk as worker needs factory=" in problem
    assert found(PartitionedStep("q", chunk, work, 2, factory=work)) == []
    (problem,) = found(PartitionedStep("q", work, work, 2, factory=7))  # type: ignore[arg-type]
    assert "factory must be a function" in problem
