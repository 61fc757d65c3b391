"""A job whose code was bound to a plan, with factories, comes to its end like any other."""

from tests.testing.jobs import first_time_broken, four, load, note, plain, share
from triolet.actors import (
    COMPLETE,
    Chunk,
    CompiledJob,
    Decision,
    Factory,
    Job,
    Node,
    Partition,
    PartitionedStep,
    Split,
    Step,
    assemble,
    compile_job,
)
from triolet.actors.testing import (
    Scenario,
    crash_at_every_commit,
    disturb,
    stop_at_every_checkpoint,
)


def made() -> Chunk:
    return load(Partition(key="b2", ordinal=1, context={}))


def manifest() -> str:
    nodes: list[Node] = [
        Step("a", note),
        Split("both", [Step("b1", note), Step("b2", made())]),
        Decision("go", plain, then={"GO": "parts", "*": COMPLETE}),
        PartitionedStep("parts", share, four, 4),
        PartitionedStep("loads", made(), four, 4, factory=load),
    ]
    return compile_job(Job("assembled", nodes)).plan.manifest


MANIFEST = manifest()


def assembled() -> CompiledJob:
    return assemble(
        "assembled",
        MANIFEST,
        {
            "a": note,
            "b1": Factory(lambda: first_time_broken),
            "b2": Factory(made),
            "go": lambda ctx: "GO",
            "parts": four,
            "parts.worker": share,
            "loads": four,
            "loads.worker": Factory(load),
        },
        budgets={"both": 2, "loads": 3},
    )


SCENARIO = Scenario(assembled, launches=3)


def test_it_completes_undisturbed() -> None:
    reports = SCENARIO.run().reports
    assert [report.status.value for report in reports][-1] == "COMPLETED"


def test_a_crash_at_any_commit_changes_nothing_of_the_end() -> None:
    assert crash_at_every_commit(SCENARIO).points


def test_a_stop_at_some_task_steps_changes_nothing_of_the_end() -> None:
    assert stop_at_every_checkpoint(SCENARIO, points=30).points


def test_mixtures_change_nothing_of_the_end() -> None:
    assert disturb(SCENARIO, seed=1, rounds=5).points
