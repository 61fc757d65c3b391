"""Invented data: the one place where tests make up names, values and commands.

The strategies of plain values need nothing. Those of commands take the dump of a
store, so that most ids and versions are real ones and histories become deep; a small
share is nonsense, which every store has to refuse in the same way.
"""

import string
from typing import Any, TypeVar

from attrs import evolve
from hypothesis import strategies as st

from triolet.storage.commands import (
    UNLIMITED,
    Abandon,
    Advance,
    BeginStopping,
    Command,
    CommitChunk,
    Definition,
    Diagnose,
    FindDefinition,
    FindStops,
    Folded,
    JobEnd,
    ListExecutions,
    ListOperations,
    NewDecision,
    NextStep,
    OpenExecution,
    OwnerFacts,
    Recover,
    RegisterOwner,
    RegisterUpgrade,
    ReleaseOwner,
    RenewLease,
    RequestStop,
    ShowExecution,
    StepEnd,
)
from triolet.storage.commands.previewing import PreviewOpening
from triolet.storage.commands.requesting import (
    ClaimLaunches,
    EndLaunch,
    FindLaunches,
    ListLaunches,
    RequestLaunch,
    WithdrawLaunch,
)
from triolet.storage.dump import Dump
from triolet.storage.model.execution import (
    Counts,
    DecisionRef,
    Failure,
    JobExecution,
    NodeTarget,
    StepExecution,
    Stop,
    Target,
    Terminal,
    TransitionKind,
)
from triolet.storage.model.json import Json
from triolet.storage.model.launch_request import LaunchRefusal, RequestStatus
from triolet.storage.model.operation import Directive, Evidence
from triolet.storage.model.parameters import (
    JobParameter,
    ParameterKind,
    ParameterSet,
    parameters_of,
)
from triolet.storage.model.partition import CopiedPlan, NewPartition, PartitionRef
from triolet.storage.model.status import BatchStatus, FailureCategory

T = TypeVar("T")

MINUTE = 60_000_000

# Commands choose from small pools: a history of many of them has to fit into what
# Hypothesis draws for one example.
JOBS = ("settlement", "Wäsche")
NODES = ("load", "rates", "report", "数", "é", "e\u0301", "z")
PARAMETERS = (
    ParameterSet(
        (
            JobParameter("day", ParameterKind.STRING, "2026-11-30"),
            JobParameter("key", ParameterKind.STRING, "s3cret", False, True),
            JobParameter("note", ParameterKind.STRING, "again", False),
        )
    ),
    parameters_of({"day": "2026-11-30"}),
    parameters_of({"day": "2026-11-30", "limit": 7, "full": True}),
    ParameterSet(),
)
COUNTS = (Counts(), Counts(3, 2, 2, 1, 1, 0), Counts(8, 7, 6, 5, 4, 3))
FACTS = (
    OwnerFacts(host="mill", pid=42, boot_id="b", process_start="17"),
    OwnerFacts(host="mühle", pid=7),
)
FAILURES = (
    None,
    Failure(FailureCategory.USER_COMPONENT, 7, where="load", type="ValueError"),
    Failure(FailureCategory.TIMEOUT, 1 << 63, message="zu spät: “5 s”"),
)
CONTEXTS = (None, '{"rows":7}', '{"rows":"八"}')
DIGESTS = (b"d" * 32, bytes(range(32)))
TARGETS: tuple[Target, ...] = (
    NodeTarget("report"),
    Terminal.COMPLETE,
    Terminal.STOP,
    Stop("report"),
)
ENDS = (
    BatchStatus.FAILED,
    BatchStatus.FAILED,
    BatchStatus.STOPPED,
    BatchStatus.COMPLETED,
    BatchStatus.STOPPING,
    BatchStatus.UNKNOWN,
    BatchStatus.STARTED,
)
NONSENSE = 99

# What the store keeps: text without U+0000 and lone surrogates.
texts = st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=20)
names = st.text(
    st.characters(codec="utf-8", exclude_categories=("Cc", "Z")),
    min_size=1,
    max_size=16,
)
i64 = st.integers(-(1 << 63), (1 << 63) - 1)
u64 = st.integers(0, (1 << 64) - 1)
small = st.integers(0, 40)
counts = st.builds(Counts, small, small, small, small, small, small)
targets: st.SearchStrategy[Target] = (
    st.sampled_from(Terminal) | st.builds(NodeTarget, names) | st.builds(Stop, names)
)
failures = st.builds(
    Failure,
    category=st.sampled_from(FailureCategory),
    id=st.integers(1, (1 << 64) - 1),
    code=st.sampled_from(["component_failed", "owner_died"]),
    where=st.none() | names,
    type=st.none() | st.just("ValueError"),
    message=st.none() | texts,
    place=st.none() | st.just("orders.py, line 12"),
)
facts = st.builds(
    OwnerFacts,
    host=st.text(string.ascii_letters + "-.", min_size=1, max_size=12),
    pid=st.integers(1, 1 << 22),
    boot_id=st.none() | texts,
    pid_namespace=st.none() | texts,
    process_start=st.none() | texts,
)
json_values: st.SearchStrategy[Json] = st.recursive(
    st.none()
    | st.booleans()
    | i64
    | st.floats(allow_nan=False, allow_infinity=False)
    | texts,
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(texts, inner, max_size=4)
    ),
    max_leaves=12,
)
json_objects = st.dictionaries(texts, json_values, max_size=4)


@st.composite
def job_parameters(draw: st.DrawFn) -> JobParameter:
    kind = draw(st.sampled_from(ParameterKind))
    values: dict[ParameterKind, st.SearchStrategy[str | int | bool]] = {
        ParameterKind.STRING: texts,
        ParameterKind.I64: i64,
        ParameterKind.U64: u64,
        ParameterKind.BOOL: st.booleans(),
    }
    return JobParameter(
        draw(names),
        kind,
        draw(values[kind]),
        identifying=draw(st.booleans()),
        secret=draw(st.booleans()),
    )


parameter_sets = st.lists(
    job_parameters(), max_size=6, unique_by=lambda one: one.name
).map(lambda items: ParameterSet(tuple(items)))


def definition(mark: str, revision: str) -> Definition:
    return Definition(
        revision=revision,
        format=2,
        fingerprint=mark.encode() * 32,
        manifest=f'{{"mark":"{mark}"}}',
    )


DEFINITIONS = (
    definition("f", "1"),
    definition("f", "2"),
    definition("g", "1"),
    definition("g", "2"),
)


def usually(usual: T, *rare: T) -> st.SearchStrategy[T]:
    """Draw *usual* nine times as often as one of the others."""
    return st.sampled_from([usual] * 9 * len(rare) + list(rare))


def flaws(*fields: str) -> st.SearchStrategy[str]:
    """Draw the field of a command that is to be nonsense; mostly none is."""
    return usually("", *fields)


def newest(ids: list[int]) -> st.SearchStrategy[int]:
    """Draw one of the ids, the last ones more often."""
    return st.sampled_from([*ids, *ids[-2:] * 2][::-1])


def owner_ids(dump: Dump) -> list[int]:
    return [owner.id for owner in dump.owners]


def ownership(dump: Dump) -> st.SearchStrategy[Command[Any]]:
    lease = st.sampled_from([MINUTE, MINUTE // 2, 0])
    owner = st.sampled_from([*owner_ids(dump), NONSENSE])
    return st.one_of(
        st.builds(RegisterOwner, st.sampled_from(FACTS), lease),
        st.builds(RenewLease, owner, lease),
        st.builds(ReleaseOwner, owner),
    )


def questions(dump: Dump) -> st.SearchStrategy[Command[Any]]:
    executions = st.sampled_from([one.id for one in dump.executions] + [NONSENSE])
    return st.one_of(
        st.builds(PreviewOpening, openings(dump)),
        st.builds(ShowExecution, executions),
        st.builds(
            ListExecutions,
            job=st.sampled_from([None, *JOBS]),
            status=st.sampled_from([None, *BatchStatus]),
            limit=st.integers(0, 5),
            before=st.none() | executions,
        ),
    )


@st.composite
def openings(draw: st.DrawFn, dump: Dump) -> OpenExecution:
    owners = owner_ids(dump)
    working = [one.owner_id for one in dump.executions if one.status.active]
    flaw = draw(flaws("owner", "definition", "parameters"))
    first = draw(next_steps(dump, None))
    return OpenExecution(
        job=draw(usually(*JOBS)),
        parameters=draw(
            parameter_sets if flaw == "parameters" else st.sampled_from(PARAMETERS)
        ),
        definition=draw(
            st.sampled_from(DEFINITIONS if flaw == "definition" else DEFINITIONS[:1])
        ),
        owner_id=NONSENSE if flaw == "owner" else draw(newest(owners)),
        failure_id=5,
        anew=draw(st.sampled_from([False, False, False, False, True])),
        dead_owner=draw(st.sampled_from([None, None, *working[-2:]])),
        request_id=draw(st.sampled_from([None, None, *claims_of(dump)])),
        first=draw(st.sampled_from([first, None])),
    )


@st.composite
def next_steps(draw: st.DrawFn, dump: Dump, execution: JobExecution | None) -> NextStep:
    """Draw a step that the execution may begin, or that a new one begins with."""
    flaw = draw(flaws("node", "inherit"))
    history = [] if execution is None else steps_of(dump, execution)
    entered = {
        one.node
        for one in history
        if execution is not None and one.execution_id == execution.id
    }
    fresh = [node for node in NODES if node not in entered]
    node = draw(st.sampled_from(NODES if flaw == "node" else fresh or NODES))
    earlier = [one.id for one in history if one.node == node][-2:]
    if flaw == "inherit":
        earlier = [NONSENSE, *(one.id for one in dump.steps)]
    return NextStep(
        node=node,
        visit=1 if fresh else 2,
        name=f"{node} it",
        limit=draw(st.sampled_from([UNLIMITED, UNLIMITED, 3, 1])),
        inherit=draw(st.sampled_from([*earlier, None])),
        starting=draw(st.sampled_from([False, False, True])),
        plan=draw(plans(dump, node)),
        partition=draw(pending(dump)) if execution is not None else None,
    )


def plans(
    dump: Dump, node: str
) -> st.SearchStrategy[tuple[NewPartition, ...] | CopiedPlan | None]:
    """Draw a plan of partitions, mostly none; a copied one is mostly of that node."""
    fresh = (NewPartition("eu", "{}"), NewPartition("Übersee", '{"n":1}'))
    known = [CopiedPlan(one.manager_id) for one in dump.partitions if one.node == node]
    return st.sampled_from(
        [None] * 6 + [fresh, fresh[:1], CopiedPlan(NONSENSE), *known[-1:] * 2]
    )


def pending(dump: Dump) -> st.SearchStrategy[PartitionRef | None]:
    """Draw a partition to be worked on, if there is one."""
    waiting = [one.ref for one in dump.partitions if one.status is BatchStatus.STARTING]
    others = [one.ref for one in dump.partitions][-1:]
    refs = [*waiting[-2:] * 3, *others, PartitionRef(NONSENSE, 1)]
    return st.sampled_from([None] * 6 + refs) if waiting else st.none()


def steps_of(dump: Dump, execution: JobExecution) -> list[StepExecution]:
    """List the steps of all attempts of the execution's instance."""
    instance_id = execution.instance_id
    attempts = {one.id for one in dump.executions if one.instance_id == instance_id}
    return [step for step in dump.steps if step.execution_id in attempts]


def live(dump: Dump) -> st.SearchStrategy[JobExecution]:
    """Draw an execution, an active one if there is any."""
    active = [one for one in dump.executions if one.status.active]
    return st.sampled_from((active or list(dump.executions))[::-1])


def next_sequence(dump: Dump, execution: JobExecution) -> int:
    """Give the number that follows all decisions of the execution."""
    every = [*dump.decisions, *(one.decision for one in dump.steps if one.decision)]
    own = [one.sequence for one in every if one.execution_id == execution.id]
    return 1 + max(own, default=0)


@st.composite
def step_ends(
    draw: st.DrawFn, dump: Dump, step: StepExecution, sequence: int
) -> StepEnd:
    """Draw the step's end; a transition goes with a finished status only."""
    flaw = draw(flaws("step", "version", "status"))
    completed, *others = BatchStatus.COMPLETED, BatchStatus.FAILED, BatchStatus.STOPPED
    status = draw(
        st.sampled_from(list(BatchStatus))
        if flaw == "status"
        else st.sampled_from([completed, completed, *others, BatchStatus.UNKNOWN])
    )
    folded = Folded(sequence, draw(st.sampled_from(TARGETS)))
    return StepEnd(
        step_id=NONSENSE if flaw == "step" else step.id,
        version=step.version + (flaw == "version"),
        status=status,
        exit_code=draw(st.sampled_from([status.value, "GOOD_ENOUGH"])),
        counts=draw(st.sampled_from(COUNTS)),
        context=draw(st.sampled_from(CONTEXTS)),
        failure=draw(st.sampled_from(FAILURES)),
        decision=folded if status.finished else None,
        partition=draw(published(dump, step)),
    )


def published(
    dump: Dump, step: StepExecution
) -> st.SearchStrategy[PartitionRef | None]:
    """Draw the partition that a worker's end is of, mostly the right one."""
    own = [one.ref for one in dump.partitions if one.worker_id == step.id]
    wrong = [one.ref for one in dump.partitions][-1:]
    return st.sampled_from([*own * 8, *wrong, None] if own else [None] * 20 + wrong)


@st.composite
def new_decisions(draw: st.DrawFn, dump: Dump, sequence: int) -> NewDecision:
    flaw = draw(flaws("sequence", "step"))
    steps = [step.id for step in dump.steps]
    return NewDecision(
        sequence=draw(st.integers(1, 4)) if flaw == "sequence" else sequence,
        source=draw(st.sampled_from(NODES)),
        visit=draw(st.sampled_from([1, 1, 2])),
        step_id=NONSENSE if flaw == "step" else draw(st.sampled_from([None, *steps])),
        kind=draw(st.sampled_from([TransitionKind.DECIDER, *TransitionKind])),
        outcome="YES",
        target=draw(st.sampled_from(TARGETS)),
        digest=draw(st.sampled_from(DIGESTS)),
        reused=draw(st.sampled_from([None, DecisionRef(1, 2)])),
    )


@st.composite
def job_ends(draw: st.DrawFn) -> JobEnd:
    status = draw(st.sampled_from(ENDS))
    return JobEnd(
        status=status,
        exit_code=status.value,
        counts=draw(st.sampled_from(COUNTS)),
        failure=draw(st.sampled_from(FAILURES)),
    )


@st.composite
def advances(draw: st.DrawFn, dump: Dump) -> Advance:
    execution = draw(live(dump))
    flaw = draw(flaws("execution", "owner", "begin", "again"))
    own = [one for one in dump.steps if one.execution_id == execution.id]
    working = [one for one in own if one.status.active] or own[-1:]
    if flaw == "again":
        working = own
    begin = finish = start = end = None
    if waiting := [one for one in working if one.status is BatchStatus.STARTING]:
        begin = draw(st.sampled_from([waiting[0].id, None]))
    sequence = next_sequence(dump, execution)
    if working and draw(st.sampled_from([True, True, False])):
        step = draw(st.sampled_from(working))
        begun = evolve(step, version=step.version + (step.id == begin))
        finish = draw(step_ends(dump, begun, sequence))
        sequence += finish.decision is not None
    decisions = [
        draw(new_decisions(dump, sequence + index))
        for index in range(draw(st.sampled_from([0, 0, 0, 1, 2])))
    ]
    match draw(st.sampled_from(["start", "start", "start", "", "end"])):
        case "start":
            start = draw(next_steps(dump, execution))
        case "end":
            end = draw(job_ends())
    return Advance(
        execution_id=NONSENSE if flaw == "execution" else execution.id,
        owner_id=1 if flaw == "owner" else execution.owner_id,
        begin=1 if flaw == "begin" else begin,
        finish=finish,
        decisions=tuple(decisions),
        start=start,
        end=end,
    )


@st.composite
def chunks(draw: st.DrawFn, dump: Dump) -> CommitChunk:
    execution = draw(live(dump))
    flaw = draw(flaws("owner", "step", "version"))
    own = [one for one in dump.steps if one.execution_id == execution.id]
    working = [one for one in own if one.status.active] or own or list(dump.steps)
    step = draw(st.sampled_from(working)) if working else None
    return CommitChunk(
        execution_id=execution.id,
        owner_id=1 if flaw == "owner" else execution.owner_id,
        step_id=NONSENSE if flaw == "step" or step is None else step.id,
        version=(0 if step is None else step.version) + (flaw == "version"),
        counts=draw(st.sampled_from(COUNTS)),
        checkpoint=draw(st.sampled_from(['{"position":1}', '{"position":2}'])),
    )


@st.composite
def operations(draw: st.DrawFn, dump: Dump) -> Command[Any]:
    """Draw what an operator asks for; a few ids, so that some are used again."""
    execution = draw(st.sampled_from(dump.executions[::-1]))
    flaw = draw(flaws("execution", "version", "evidence"))
    version = execution.version + (flaw == "version")
    words: dict[str, Any] = {
        "execution_id": NONSENSE if flaw == "execution" else execution.id,
        "actor": "eve",
        "operation_id": f"op {draw(st.integers(1, 12))}",
        "reason": draw(st.sampled_from([None, "wegen Umbau"])),
    }
    action = draw(st.sampled_from(["stop", "stop", "abandon", "recover", "recover"]))
    if action != "recover":
        kind = RequestStop if action == "stop" else Abandon
        return kind(**words, expected_version=draw(usually(None, version)))
    owners = [None, None, *owner_ids(dump)]
    evidence = evidence_of(dump, execution).digest
    return Recover(
        **words,
        expected_version=version,
        directive=draw(st.sampled_from(Directive)),
        evidence=DIGESTS[0] if flaw == "evidence" else evidence,
        requester=draw(st.sampled_from(owners)),
        dead_owner=draw(st.sampled_from([execution.owner_id, *owners])),
    )


def evidence_of(dump: Dump, execution: JobExecution) -> Evidence:
    """Collect what an operator is shown of an execution."""
    steps = [one for one in dump.steps if one.execution_id == execution.id]
    decided = any(one.execution_id == execution.id for one in dump.decisions)
    return Evidence.of(execution, steps, decided)


def inspections(dump: Dump) -> st.SearchStrategy[Command[Any]]:
    ids = [one.id for one in dump.executions]
    executions = st.sampled_from([*ids, NONSENSE])
    return st.one_of(
        st.builds(FindStops, st.sampled_from([*owner_ids(dump), NONSENSE])),
        st.builds(ListOperations, executions),
        st.builds(Diagnose, st.none() | executions, st.integers(0, 3)),
    )


@st.composite
def takings_in(draw: st.DrawFn, dump: Dump) -> BeginStopping:
    """Draw that an owner takes in a stop, one that was asked for if there is any."""
    execution = draw(live(dump))
    asked = [
        one for one in dump.stops if dump.executions[one.execution_id - 1].status.active
    ]
    if asked:
        stop = draw(st.sampled_from(asked))
        return BeginStopping(stop.execution_id, stop.owner_id)
    return BeginStopping(execution.id, draw(st.sampled_from([1, execution.owner_id])))


@st.composite
def upgrades(draw: st.DrawFn) -> Command[Any]:
    """Draw an edge between two of the few definitions, or a look for one."""
    job = draw(usually(*JOBS))
    if draw(st.sampled_from([False, False, True])):
        return FindDefinition(job, draw(st.sampled_from(["1", "2", "9"])))
    source, target = draw(st.permutations(DEFINITIONS).map(lambda order: order[:2]))
    if source.fingerprint == target.fingerprint:
        target = definition("h", "3")
    renamed = draw(st.sampled_from([{}, {}, {"load": "z", "rates": "load"}]))
    kept = {node: node for node in NODES if node not in renamed.values()}
    return RegisterUpgrade(
        job=job,
        key=draw(st.sampled_from(["a", "b"])),
        source=source.fingerprint,
        target=target,
        steps=tuple(sorted({**kept, **renamed}.items())),
    )


def claims_of(dump: Dump) -> list[int]:
    """List claimed requests, and one that there is not."""
    claimed = RequestStatus.CLAIMED
    return [*[one.id for one in dump.requests if one.status is claimed], NONSENSE]


@st.composite
def requests(draw: st.DrawFn, dump: Dump) -> Command[Any]:
    """Draw what is done with launch requests."""
    owner_id = draw(st.sampled_from([*owner_ids(dump), NONSENSE]))
    jobs = draw(st.sampled_from([JOBS, JOBS[:1], ()]))
    known = [one.id for one in dump.requests]
    held = tuple(draw(st.sampled_from([[], known[:1], known[-2:]])))
    match draw(
        st.sampled_from(
            ["ask", "ask", "claim", "claim", "end", "find", "list", "withdraw"]
        )
    ):
        case "ask":
            return RequestLaunch(
                job=draw(usually(*JOBS)),
                parameters=draw(st.sampled_from(PARAMETERS[1:])),
                anew=draw(st.booleans()),
            )
        case "claim":
            dead = draw(st.sampled_from([(), tuple(owner_ids(dump)[-2:])]))
            limit = draw(st.integers(1, 3))
            return ClaimLaunches(
                owner_id=owner_id, jobs=jobs, limit=limit, held=held, dead_owners=dead
            )
        case "end":
            return draw(ends_of_requests(dump, owner_id))
        case "withdraw":
            return WithdrawLaunch(
                request_id=draw(st.sampled_from([NONSENSE, *known])),
                actor="eve",
                reason=draw(st.sampled_from([None, "no “paper”"])),
            )
        case "find":
            return FindLaunches(owner_id=owner_id, jobs=jobs, held=held)
        case _:
            return ListLaunches(
                job=draw(st.sampled_from([None, *JOBS])),
                status=draw(st.sampled_from([None, *RequestStatus])),
                limit=draw(st.integers(0, 3)),
                before=draw(st.sampled_from([None, NONSENSE, *known])),
            )


@st.composite
def ends_of_requests(draw: st.DrawFn, dump: Dump, owner_id: int) -> EndLaunch:
    """Draw the end of a request, mostly of one that is the owner's."""
    claimed = [one for one in dump.requests if one.status is RequestStatus.CLAIMED]
    request_id = draw(st.sampled_from([*[one.id for one in claimed], NONSENSE]))
    owners = {one.id: one.owner_id for one in claimed}
    status = draw(st.sampled_from([RequestStatus.DONE, RequestStatus.REQUESTED]))
    refusal = draw(
        st.sampled_from([None, LaunchRefusal("run_unknown", "no “such” run")])
    )
    return EndLaunch(
        request_id=request_id,
        owner_id=draw(usually(owners.get(request_id) or owner_id, owner_id)),
        status=status if refusal is None else RequestStatus.REFUSED,
        refusal=refusal,
    )


def commands(dump: Dump) -> st.SearchStrategy[Command[Any]]:
    """Draw any command without an enlisted write; there must be an owner."""
    if not dump.executions:
        return openings(dump)
    moving: list[st.SearchStrategy[Command[Any]]] = [advances(dump)] * 8
    moving += [chunks(dump)] * 2
    if not any(execution.status.active for execution in dump.executions):
        moving = moving[:1]
    others = [*[openings(dump)] * 3, ownership(dump), questions(dump), upgrades()]
    others += [operations(dump), operations(dump), takings_in(dump), inspections(dump)]
    others += [requests(dump)] * 3
    return st.sampled_from(moving + others).flatmap(lambda kind: kind)
