"""Stored records of the first release: later releases must read every one of them.

The files under ``golden`` are never rewritten. A format that changes gets a new file
beside the old one.
"""

import json
import sqlite3
from pathlib import Path
from uuid import UUID

import pytest
from attrs import evolve

from triolet.storage.backend import run
from triolet.storage.codec import (
    decode_facts,
    decode_failure,
    decode_parameters,
    decode_target,
    encode_facts,
    encode_failure,
    encode_parameters,
    encode_target,
)
from triolet.storage.commands import (
    ActionNotAllowed,
    AlreadyRunning,
    ListExecutions,
    ListOperations,
    OwnerFacts,
    ShowExecution,
    StaleVersion,
)
from triolet.storage.envelope import (
    CHECKPOINT_FORMAT,
    CONTEXT_FORMAT,
    POSITION_SCHEMA,
    STATE_SCHEMA,
    seal,
    unseal,
)
from triolet.storage.model.errors import SchemaMissing
from triolet.storage.model.execution import Failure, NodeTarget, Target, Terminal
from triolet.storage.model.operation import Action
from triolet.storage.model.parameters import JobParameter, ParameterKind, ParameterSet
from triolet.storage.model.status import BatchStatus, FailureCategory
from triolet.storage.sqlite import SqliteBackend
from triolet.storage.stores import migrate_store

GOLDEN = Path(__file__).parent / "golden"
RECORDS: dict[str, str] = json.loads((GOLDEN / "records_v1.json").read_text())

FACTS = OwnerFacts(
    host="alpha", pid=4711, boot_id="b0", pid_namespace="pid:[1]", process_start="99"
)
FAILURE = Failure(
    FailureCategory.USER_COMPONENT,
    77,
    "tasklet_failed",
    "load",
    "ValueError",
    "no such day",
)
PARAMETERS = ParameterSet(
    (
        JobParameter("day", ParameterKind.STRING, "2026-11-30"),
        JobParameter("limit", ParameterKind.I64, -5),
        JobParameter("mask", ParameterKind.U64, 1 << 63),
        JobParameter("dry", ParameterKind.BOOL, True, identifying=False),
        JobParameter("token", ParameterKind.STRING, "hush", secret=True),
    )
)


def test_an_owner_is_read_and_written_as_ever() -> None:
    assert decode_facts(RECORDS["owner"]) == FACTS
    assert encode_facts(FACTS) == RECORDS["owner"]


def test_a_failure_is_read_and_written_as_ever() -> None:
    assert decode_failure(RECORDS["failure"]) == FAILURE
    assert encode_failure(FAILURE) == RECORDS["failure"]


def test_parameters_are_read_and_written_as_ever() -> None:
    stored = encode_parameters(PARAMETERS, identifying_only=False)
    assert stored == RECORDS["parameters"]
    blanked = [evolve(one, value="") if one.secret else one for one in PARAMETERS]
    assert decode_parameters(stored) == ParameterSet(tuple(blanked))


def test_secret_values_are_not_in_the_stored_text() -> None:
    assert "hush" not in RECORDS["parameters"]


def test_targets_are_read_and_written_as_ever() -> None:
    targets: dict[str, Target] = {
        "target_node": NodeTarget("load"),
        "target_terminal": Terminal.STOP,
    }
    for name, target in targets.items():
        assert decode_target(RECORDS[name]) == target
        assert encode_target(target) == RECORDS[name]


def test_a_checkpoint_is_read_and_written_as_ever() -> None:
    kept = unseal(CHECKPOINT_FORMAT, POSITION_SCHEMA, RECORDS["checkpoint"], "it")
    assert kept == {"record": 5000}
    written = seal(CHECKPOINT_FORMAT, POSITION_SCHEMA, {"record": 5000}, "it")
    assert written == RECORDS["checkpoint"]


def test_a_context_is_read_and_written_as_ever() -> None:
    state = {"routes": ["LGA-EYW", "é"], "mean": 2.5}
    assert unseal(CONTEXT_FORMAT, STATE_SCHEMA, RECORDS["context"], "it") == state
    assert seal(CONTEXT_FORMAT, STATE_SCHEMA, state, "it") == RECORDS["context"]


def opened(folder: Path, version: int) -> SqliteBackend:
    """Open the store that a golden file describes, raised to our schema."""
    path = folder / "old.db"
    with sqlite3.connect(path) as made:
        made.executescript((GOLDEN / f"sqlite_v{version}.sql").read_text())
    made.close()
    with pytest.raises(SchemaMissing, match="run 'triolet migrate' once"):
        SqliteBackend(str(path), clock=lambda: 0, writer=b"g" * 16, create=False)
    before, after = migrate_store(f"sqlite:///{path}")
    assert before == version < after
    return SqliteBackend(str(path), clock=lambda: 0, writer=b"g" * 16, create=False)


def test_a_store_with_operations_is_read(tmp_path: Path) -> None:
    store = opened(tmp_path, 2)
    (stopped, recovered, abandoned) = (
        run(store, UUID(int=1), ListOperations(number)) for number in (1, 2, 3)
    )
    assert stopped.stop is not None
    assert (stopped.stop.actor, stopped.stop.reason) == ("eve", "too slow")
    (decision,) = recovered.recoveries
    assert (decision.prior, decision.result) == (
        BatchStatus.UNKNOWN,
        BatchStatus.FAILED,
    )
    assert [
        (one.action, one.prior, one.result, one.refusal)
        for history in (stopped, recovered, abandoned)
        for one in history.operations
    ] == [
        (Action.STOP, BatchStatus.STARTED, BatchStatus.STARTED, None),
        (
            Action.RECOVER,
            BatchStatus.STARTED,
            BatchStatus.STARTED,
            AlreadyRunning(1, 1, FACTS, 30_000_000),
        ),
        (
            Action.ABANDON,
            BatchStatus.UNKNOWN,
            BatchStatus.UNKNOWN,
            ActionNotAllowed(Action.ABANDON, 2, BatchStatus.UNKNOWN),
        ),
        (Action.RECOVER, BatchStatus.UNKNOWN, BatchStatus.FAILED, None),
        (
            Action.ABANDON,
            BatchStatus.FAILED,
            BatchStatus.FAILED,
            StaleVersion(9, 3),
        ),
        (Action.ABANDON, BatchStatus.FAILED, BatchStatus.ABANDONED, None),
    ]
    store.close()


def test_a_whole_store_of_the_first_release_is_read(tmp_path: Path) -> None:
    store = opened(tmp_path, 1)
    page = run(store, UUID(int=1), ListExecutions())
    assert [line.execution.status for line in page.lines] == [
        BatchStatus.COMPLETED,
        BatchStatus.FAILED,
    ]
    detail = run(store, UUID(int=2), ShowExecution(2))
    assert [step.node for step in detail.reused] == ["load"]
    assert [(one.source, one.outcome) for one in detail.decisions] == [
        ("load", "COMPLETED"),
        ("enough", "YES"),
        ("report", "COMPLETED"),
    ]
    (load,) = detail.reused
    assert load.counts.written == 3
    assert load.checkpoint is not None
    store.close()
