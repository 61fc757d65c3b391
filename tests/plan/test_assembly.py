"""Assembly: what may be bound to a plan that exists, and every refusal in its order."""

import pytest
from attrs import evolve
from hypothesis import given

from triolet.actors.plan.assembly import assemble
from triolet.actors.plan.assembly_errors import (
    AssemblyError,
    ComponentMismatch,
    DuplicateBinding,
    JobNameMismatch,
    ManifestUnsupported,
    MissingBinding,
    StepNameMismatch,
    WrongNodeKind,
)
from triolet.actors.plan.bound_code import Code
from triolet.actors.plan.compile import compile_job
from triolet.actors.plan.definition import (
    COMPLETE,
    Chunk,
    Decision,
    Job,
    JobListener,
    PartitionedStep,
    Split,
    Step,
    StepListener,
)
from triolet.actors.plan.job_steps import JobStep
from triolet.actors.plan.made import Factory
from triolet.actors.plan.naming import every_node, named_nodes, workers_in
from triolet.storage.model.errors import DefinitionError, InvalidValue

from .definitions import ElsewhereWriter, Reader, Writer, jobs, work


def other(ctx: object) -> None:
    """Do nothing either, and be somebody else."""


def make() -> None:
    """Stand for a factory: assembling calls nobody."""


def everything() -> Job:
    """Give a job with a node of every kind."""
    return Job(
        "all",
        [
            Step("fetch", work, name="fetch_orders", revision="fetch-v1"),
            Decision("choose", work, then={"GO": "both", "*": COMPLETE}),
            Split("both", [Step("left", work), [Step("right", work)]]),
            PartitionedStep("parts", Step("part", work), work, 3),
            Step("load", Chunk(Reader(), Writer(), size=5)),
        ],
    )


MANIFEST = compile_job(everything()).plan.manifest
CHUNK = Chunk(Reader(), Writer(), size=5)


def code(**changes: Code) -> dict[str, Code]:
    bound: dict[str, Code] = dict.fromkeys(
        ("fetch", "choose", "left", "right", "parts", "part"), work
    )
    return {**bound, "load": CHUNK, **changes}


def without(node: str) -> dict[str, Code]:
    return {key: given for key, given in code().items() if key != node}


def test_every_node_gets_the_code_that_is_bound_to_it() -> None:
    job = assemble("all", MANIFEST, code(left=other), budgets={"both": 2, "parts": 9})
    compiled = compile_job(everything())
    assert job.plan == compiled.plan
    assert job.revision == compiled.revision
    assert job.steps["left"].work is other
    assert job.steps["fetch"].name == "fetch_orders"
    assert job.steps["load"].work is CHUNK
    assert job.decisions["choose"].decider is work
    assert job.splits["both"].max_parallel == 2
    assert job.partitioned["parts"].planner is work
    assert job.partitioned["parts"].max_workers == 9
    assert job.partitioned["parts"].partitions == 3
    assert job.components == (CHUNK.reader, CHUNK.writer)
    assert not job.factories


def test_budgets_are_those_of_a_definition_unless_given() -> None:
    job, compiled = assemble("all", MANIFEST, code()), compile_job(everything())
    assert job.splits["both"].max_parallel == compiled.splits["both"].max_parallel
    assert (
        job.partitioned["parts"].max_workers
        == compiled.partitioned["parts"].max_workers
    )


def test_a_step_adds_what_the_plan_does_not_hold() -> None:
    step = Step(
        "x", other, name="fetch_orders", revision="fetch-v1", grace=3, write=work
    )
    job = assemble("all", MANIFEST, code(fetch=step))
    assert job.steps["fetch"] == evolve(step, id="fetch")


def test_the_rest_of_a_job_is_given_as_for_a_job() -> None:
    listener = JobListener("heard", before=work)
    job = assemble(
        "all",
        MANIFEST,
        code(),
        revision="r7",
        listeners=[listener],
        restartable=False,
    )
    assert (job.revision, job.listeners, job.restartable) == ("r7", (listener,), False)


def test_mistakes_in_the_rest_of_a_job_are_those_of_a_definition() -> None:
    with pytest.raises(DefinitionError) as caught:
        assemble("all", MANIFEST, code(), revision=" ", listeners=[JobListener("idle")])
    assert len(caught.value.problems) == 2


def test_factories_are_kept_and_share_no_components() -> None:
    factory = Factory(make)
    job = assemble("all", MANIFEST, code(left=factory, part=factory, load=factory))
    assert job.factories == {"left": factory, "load": factory}
    assert job.partitioned["parts"].factory is make
    assert job.components == ()


@given(jobs())
def test_a_job_can_be_assembled_of_its_plan_and_its_own_nodes(job: Job) -> None:
    bound: dict[str, Code] = {}
    for node in every_node(named_nodes(job.steps, compile_job)[0].values()):
        if isinstance(node, Step | Decision):
            bound[node.id] = node
        if isinstance(node, PartitionedStep):
            bound[node.id] = node.planner
            (worker,) = workers_in([node])
            chunk = isinstance(worker.work, Chunk)
            bound[worker.id] = Factory(make) if chunk else worker
    compiled = compile_job(job)
    assembled = assemble(job.name, compiled.plan, [*bound.items()])
    assert assembled.plan == compiled.plan
    assert assembled.steps.keys() == compiled.steps.keys()
    assert assembled.decisions == compiled.decisions


LISTENED = Step("load", CHUNK, listeners=[StepListener("new", before=work)])

REFUSALS: list[tuple[dict[str, Code], type[AssemblyError], str]] = [
    (
        code(nobody=work),
        WrongNodeKind,
        "'nobody' is no node of the plan, but a function is bound to it",
    ),
    (
        code(both=work),
        WrongNodeKind,
        "'both' is a split or a join, which has no code, but a function is bound to it",
    ),
    (
        code(fetch=CHUNK),
        WrongNodeKind,
        "'fetch' is a tasklet step, but a Chunk is bound to it",
    ),
    (
        code(load=Step("load", work)),
        WrongNodeKind,
        "'load' is a chunk step, but a Step with a tasklet is bound to it",
    ),
    (
        code(choose=Step("choose", work)),
        WrongNodeKind,
        "'choose' is a decision, but a Step with a tasklet is bound to it",
    ),
    (
        code(parts=Factory(make)),
        WrongNodeKind,
        "'parts' is a partitioned step, which takes its planner, but a Factory is "
        "bound to it",
    ),
    (
        code(fetch=Step("fetch", work, revision="fetch-v1")),
        StepNameMismatch,
        "'fetch' has the step name 'fetch_orders', but the step bound to it is called "
        "'fetch': give it that name",
    ),
    (
        without("choose") | {"left": work},
        MissingBinding,
        "nothing is bound to 'choose', which is a decision",
    ),
    ({}, MissingBinding, "nothing is bound to 'choose', which is a decision"),
    (
        code(fetch=Step("fetch_orders", work)),
        ComponentMismatch,
        "what is bound to 'fetch' does not fit the plan: step 'fetch': revision "
        "'fetch-v1' -> '1'",
    ),
    (
        code(load=Chunk(Reader(), Writer(), size=6)),
        ComponentMismatch,
        "what is bound to 'load' does not fit the plan: step 'load': chunk size 5 -> 6",
    ),
    (
        code(load=Chunk(Reader(), ElsewhereWriter(), size=5)),
        ComponentMismatch,
        "what is bound to 'load' does not fit the plan: step 'load': delivery "
        "atomic_same_resource -> at_least_once",
    ),
    (
        code(load=Chunk(Reader, Writer(), size=5)),
        ComponentMismatch,
        "what is bound to 'load' does not fit the plan: the reader is the class "
        "Reader: give an instance of it",
    ),
    (
        code(load=LISTENED),
        ComponentMismatch,
        "what is bound to 'load' does not fit the plan: step 'load': listener revisions "
        "[] -> ['1']",
    ),
    (
        code(choose=Decision("choose", work, then={}, revision="2")),
        ComponentMismatch,
        "what is bound to 'choose' does not fit the plan: decision 'choose': revision "
        "'1' -> '2'",
    ),
]


@pytest.mark.parametrize(("bound", "kind", "text"), REFUSALS)
def test_code_that_does_not_belong_to_the_plan_is_refused(
    bound: dict[str, Code], kind: type[AssemblyError], text: str
) -> None:
    with pytest.raises(AssemblyError) as caught:
        assemble("all", MANIFEST, bound)
    assert type(caught.value) is kind
    assert str(caught.value) == text


def test_what_is_no_code_is_of_the_wrong_kind() -> None:
    with pytest.raises(WrongNodeKind) as caught:
        assemble("all", MANIFEST, {"fetch": 5})  # type: ignore[dict-item]  # its point
    assert str(caught.value) == "'fetch' is a tasklet step, but an int is bound to it"


@pytest.mark.parametrize("bad", [None, 5, "fetch", [work], everything()])
def test_arguments_of_other_types_are_refused(bad: object) -> None:
    with pytest.raises(InvalidValue, match="the code must be a dict"):
        assemble("all", MANIFEST, bad)  # type: ignore[arg-type]  # its point
    if not isinstance(bad, str):
        with pytest.raises(InvalidValue, match="must be a plan or its manifest"):
            assemble("all", bad, code())  # type: ignore[arg-type]  # its point


@pytest.mark.parametrize("text", ["", "{}", '{"format":9}'])
def test_what_is_no_manifest_is_refused(text: str) -> None:
    with pytest.raises(ManifestUnsupported, match="job 'all' cannot be assembled"):
        assemble("all", text, code())


def test_budgets_belong_to_splits_and_partitioned_steps() -> None:
    with pytest.raises(InvalidValue) as caught:
        assemble("all", MANIFEST, code(), budgets={"fetch": 2})
    assert str(caught.value) == (
        "budgets= names 'fetch', which is no split and no partitioned step"
    )
    for budgets in ({"both": 3}, {"both": 0}, {"parts": 65}):
        with pytest.raises(ComponentMismatch):
            assemble("all", MANIFEST, code(), budgets=budgets)


def test_the_first_kind_of_mistake_that_there_is_is_told() -> None:
    """Each pair of bindings has one mistake fewer than the one before."""
    wrong = Step("fetch_orders", work)
    bindings: list[tuple[str, Code]] = [
        ("load", Chunk(Reader(), Writer())),
        ("fetch", wrong),
        ("fetch", Step("other", work)),
        ("load", work),
    ]
    with pytest.raises(JobNameMismatch) as caught:
        assemble("some", MANIFEST, bindings)
    assert str(caught.value) == (
        "the plan is one of job 'all', not of 'some': give that name, or the other "
        "job's plan"
    )
    with pytest.raises(WrongNodeKind):
        assemble("all", MANIFEST, bindings)
    with pytest.raises(StepNameMismatch):
        assemble("all", MANIFEST, bindings[:3])
    bindings[2] = ("fetch", work)
    with pytest.raises(DuplicateBinding) as duplicate:
        assemble("all", MANIFEST, bindings[:3])
    assert str(duplicate.value) == (
        "'fetch' is bound twice: leave one of the bindings out"
    )
    with pytest.raises(MissingBinding) as missing:
        assemble("all", MANIFEST, bindings[:2])
    assert missing.value.node == "choose"
    with pytest.raises(ComponentMismatch):
        assemble("all", MANIFEST, {**code(), **dict(bindings[:2])})


def test_nodes_inside_of_branches_are_bound_at_any_depth() -> None:
    inner = Split("inner", [Step("x", work), Step("y", work)])
    route = Decision("route", work, then={"GO": "inner", "*": COMPLETE})
    job = Job(
        "deep", [Step("a", work), Split("outer", [[route, inner], Step("z", work)])]
    )
    compiled = compile_job(job)
    bound: dict[str, Code] = dict.fromkeys(("a", "route", "x", "y", "z"), work)
    assembled = assemble("deep", compiled.plan, bound, budgets={"inner": 2})
    assert assembled.plan == compiled.plan
    assert assembled.steps.keys() == {"a", "x", "y", "z"}
    assert assembled.splits["inner"].max_parallel == 2
    assert assembled.decisions["route"].decider is work
    del bound["y"]
    with pytest.raises(MissingBinding) as caught:
        assemble("deep", compiled.plan, bound)
    assert caught.value.node == "y"


def test_a_flow_that_leads_back_keeps_its_visit_limits() -> None:
    again = Decision("again", work, then={"YES": "a", "*": COMPLETE})
    job = Job("laps", [Step("a", work, visit_limit=3), again])
    compiled = compile_job(job)
    assembled = assemble("laps", compiled.plan, {"a": other, "again": again})
    assert assembled.plan == compiled.plan
    assert assembled.steps["a"].visit_limit == 3
    with pytest.raises(ComponentMismatch, match="visit limit 3 -> none"):
        assemble("laps", compiled.plan, {"a": Step("a", work), "again": work})


def test_a_step_that_runs_a_job_is_bound_to_a_job_step() -> None:
    child = Job("child", [Step("c", work)])
    step = JobStep("run", child)
    compiled = compile_job(Job("parent", [step]))
    assembled = assemble("parent", compiled.plan, {"run": step})
    assert assembled.plan == compiled.plan
    assert assembled.children["run"].plan == compile_job(child).plan
    with pytest.raises(WrongNodeKind, match="which takes a JobStep"):
        assemble("parent", compiled.plan, {"run": work})
    changed = JobStep("run", Job("child", [Step("d", work)]))
    with pytest.raises(ComponentMismatch):
        assemble("parent", compiled.plan, {"run": changed})
