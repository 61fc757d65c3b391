"""One table from what happened to the number that scripts see."""

import pytest

import triolet.actors as face
from triolet.actors import BatchStatus, TrioletError
from triolet.actors.cli.confirming import ConfirmationMissing
from triolet.actors.cli.exit_codes import (
    BY_ERROR,
    BY_STATUS,
    CONFLICT,
    DEADLINE,
    DEFINITION,
    DONE,
    INTERNAL,
    JOB_FAILED,
    JOB_STOPPED,
    NOT_FOUND,
    OUTPUT_FAILED,
    REFUSED,
    SECOND_SIGNAL,
    STORE,
    UNCONFIRMED,
    UNKNOWN,
    USAGE,
    exit_of,
)
from triolet.actors.cli.failing import UsageInvalid
from triolet.actors.cli.operating import OwnerGone
from triolet.actors.cli.output import OutputFailed
from triolet.actors.cli.target import TargetInvalid

INTERNAL_ON_PURPOSE = {
    "triolet_error": "the root, never raised",
    "definition_problem": "a part of definition_invalid",
    "internal_error": "a bug",
    "csv_error": "the job ends FAILED",
    "query_changed": "the job ends FAILED",
    "query_key_invalid": "the job ends FAILED",
    "csv_file_missing": "the job ends FAILED",
    "csv_file_unusable": "the job ends FAILED",
    "csv_member_unclear": "the job ends FAILED",
    "csv_encoding_wrong": "the job ends FAILED",
    "csv_character_illegal": "the job ends FAILED",
    "csv_quote_unclosed": "the job ends FAILED",
    "csv_quote_misplaced": "the job ends FAILED",
    "csv_field_too_large": "the job ends FAILED",
    "csv_record_ragged": "the job ends FAILED",
    "csv_header_missing": "the job ends FAILED",
    "csv_column_missing": "the job ends FAILED",
    "csv_column_ambiguous": "the job ends FAILED",
    "csv_file_changed": "the job ends FAILED",
    "table_error": "the job ends FAILED",
    "table_missing": "the job ends FAILED",
    "table_mismatch": "the job ends FAILED",
    "table_row_refused": "the job ends FAILED",
    "job_not_completed": "only raise_for_status raises it",
    "step_not_reported": "only a program asks a report",
    "shutting_down": "the command launches once",
}


def public_errors() -> list[type[TrioletError]]:
    return [
        one
        for name in face.__all__
        if isinstance(one := getattr(face, name), type)
        and issubclass(one, TrioletError)
    ]


def test_the_numbers_are_those_of_the_documented_table() -> None:
    codes = (DONE, USAGE, DEFINITION, REFUSED, NOT_FOUND, CONFLICT, UNKNOWN, STORE)
    assert codes == (0, 1, 2, 3, 4, 5, 6, 7)
    assert (UNCONFIRMED, DEADLINE) == (8, 9)
    assert (OUTPUT_FAILED, JOB_FAILED, JOB_STOPPED) == (10, 11, 12)
    assert (INTERNAL, SECOND_SIGNAL) == (70, 130)


EVERY: list[type[TrioletError]] = [
    *public_errors(),
    ConfirmationMissing,
    OutputFailed,
    OwnerGone,
    TargetInvalid,
    UsageInvalid,
]


def number_of(kind: type[TrioletError]) -> int:
    return exit_of(kind.__new__(kind))


@pytest.mark.parametrize("kind", EVERY, ids=lambda kind: kind.__name__)
def test_every_error_has_an_exit_code_or_is_internal_on_purpose(
    kind: type[TrioletError],
) -> None:
    assert (number_of(kind) == INTERNAL) == (kind.code in INTERNAL_ON_PURPOSE)


def test_no_exit_code_is_given_to_an_error_that_does_not_exist() -> None:
    known = {kind.code for kind in EVERY}
    assert BY_ERROR.keys() | INTERNAL_ON_PURPOSE.keys() <= known


def test_an_error_of_somebody_else_is_internal() -> None:
    assert exit_of(ValueError("no")) == INTERNAL


def test_every_end_of_a_job_has_its_own_exit_code() -> None:
    assert BY_STATUS == {
        BatchStatus.COMPLETED: 0,
        BatchStatus.UNKNOWN: 6,
        BatchStatus.FAILED: 11,
        BatchStatus.STOPPED: 12,
    }


@pytest.mark.parametrize(
    ("code", "number"),
    [
        ("definition_invalid", 2),
        ("target_invalid", 2),
        ("parameter_invalid", 3),
        ("instance_complete", 3),
        ("instance_abandoned", 3),
        ("not_restartable", 3),
        ("definition_incompatible", 3),
        ("execution_not_found", 4),
        ("already_running", 5),
        ("lease_lost", 5),
        ("usage_invalid", 1),
        ("action_not_allowed", 3),
        ("not_latest_attempt", 3),
        ("other_instance", 3),
        ("evidence_changed", 5),
        ("operation_id_conflict", 5),
        ("stale_version", 5),
        ("confirmation_missing", 8),
        ("owner_gone", 9),
        ("output_failed", 10),
        ("internal_error", 70),
        ("outcome_unresolved", 6),
        ("store_unavailable", 7),
        ("store_locked", 7),
        ("schema_too_new", 7),
    ],
)
def test_an_error_has_the_exit_code_of_its_kind(code: str, number: int) -> None:
    (kind,) = [one for one in EVERY if one.code == code]
    assert number_of(kind) == number
