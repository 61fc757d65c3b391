"""Which nodes carry over when steps move in and out of splits."""

import pytest

from triolet.actors.plan.compile import compile_job
from triolet.actors.plan.definition import (
    Chunk,
    Job,
    Node,
    PartitionedStep,
    Split,
    Step,
)
from triolet.actors.plan.job_steps import JobStep
from triolet.actors.plan.upgrade import begun_new, carried_nodes, left_behind
from triolet.storage.model.errors import InvalidValue

from .definitions import Reader, Writer, work

FIRST, LEFT, RIGHT = (Step(name, work) for name in "alr")


def carried(
    before: list[Node], after: list[Node], **renamed: str
) -> list[tuple[str, str]]:
    earlier, changed = (compile_job(Job("j", one)).plan for one in (before, after))
    return list(carried_nodes(earlier, changed, renamed))


def test_steps_in_branches_are_carried_over() -> None:
    longer = Split("p", [LEFT, [RIGHT, Step("s", work)]])
    assert carried([FIRST, Split("p", [LEFT, RIGHT])], [FIRST, longer]) == [
        ("a", "a"),
        ("l", "l"),
        ("p", "p"),
        ("p.join", "p.join"),
        ("r", "r"),
    ]


def test_a_step_may_move_into_a_branch_and_change_its_name() -> None:
    split = Split("p", [Step("left", work), RIGHT])
    assert carried([FIRST, LEFT, RIGHT], [FIRST, split], l="left") == [
        ("a", "a"),
        ("l", "left"),
        ("r", "r"),
    ]


def test_nodes_are_carried_over_into_inner_splits_and_out() -> None:
    inner = Split("i", [LEFT, PartitionedStep("q", Step("w", work), work, 2)])
    nested: list[Node] = [FIRST, Split("p", [[inner, Step("s", work)], RIGHT])]
    flat: list[Node] = [FIRST, Split("p", [LEFT, RIGHT]), Step("s", work)]
    every = ["a", "l", "p", "p.join", "r", "s"]
    assert carried(nested, flat) == carried(flat, nested) == [(n, n) for n in every]
    more = [*every, "i", "i.join", "q"]
    assert carried(nested, nested) == [(node, node) for node in sorted(more)]


def test_a_step_that_became_another_kind_is_left_behind() -> None:
    chunk = Step("r", Chunk(Reader(), Writer()))
    before: list[Node] = [FIRST, Split("p", [LEFT, RIGHT])]
    assert ("r", "r") not in carried(before, [FIRST, Split("p", [LEFT, chunk])])
    assert carried(before, [FIRST, PartitionedStep("r", work, work, 2)]) == [("a", "a")]


def test_a_worker_has_no_rows_of_its_own_to_carry() -> None:
    before: list[Node] = [PartitionedStep("q", Step("w", work), work, 2)]
    assert carried(before, before) == [("q", "q")]
    with pytest.raises(InvalidValue, match="names 'w', but the earlier definition"):
        carried(before, before, w="w")


def test_a_partitioned_step_keeps_its_name() -> None:
    before: list[Node] = [PartitionedStep("q", Step("w", work), work, 2)]
    after: list[Node] = [PartitionedStep("z", Step("w", work), work, 2)]
    with pytest.raises(InvalidValue, match="renames the partitioned step 'q'"):
        carried(before, after, q="z")


def test_a_step_that_runs_a_job_keeps_its_name_and_its_job() -> None:
    one, other = (Job(name, [FIRST]) for name in ("one", "other"))
    before: list[Node] = [FIRST, JobStep("run", one)]
    changed = Job("one", [FIRST, LEFT])
    assert carried(before, [FIRST, JobStep("run", changed)])[1:] == [("run", "run")]
    assert carried(before, [FIRST, JobStep("run", other)]) == [("a", "a")]
    with pytest.raises(InvalidValue, match="renames 'run', which runs a job"):
        carried(before, [FIRST, JobStep("again", one)], run="again")


def test_what_is_not_carried_over_is_told_without_joins_and_workers() -> None:
    before: list[Node] = [FIRST, Split("p", [LEFT, RIGHT])]
    after: list[Node] = [FIRST, LEFT, PartitionedStep("r", Step("w", work), work, 2)]
    earlier, changed = (compile_job(Job("j", one)).plan for one in (before, after))
    pairs = carried_nodes(earlier, changed, {})
    assert (left_behind(earlier, pairs), begun_new(changed, pairs)) == (
        ("p", "r"),
        ("r",),
    )
