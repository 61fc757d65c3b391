"""Reports, listings and details, as people read them."""

import pytest
from attrs import evolve

from triolet.actors import (
    BatchStatus,
    Counts,
    Failure,
    FailureCategory,
    LaunchReport,
    OutcomeUnresolved,
    StartLimitReached,
)
from triolet.actors.cli.answers import Answer
from triolet.actors.cli.failing import Form, guarded
from triolet.actors.cli.formats import (
    counted,
    counts_text,
    duration,
    elapsed,
    instant,
    table,
    took,
)
from triolet.actors.cli.reporting import outcome_of, report_lines
from triolet.actors.cli.showing import parameter_text
from triolet.actors.job.wording import failure_text
from triolet.actors.plan.actions import LatestRow, StepReport
from triolet.storage.model.execution import NO_COUNTS
from triolet.storage.model.parameters import (
    JobParameter,
    ParameterKind,
    ParameterSet,
)

FAILURE = Failure(
    FailureCategory.USER_COMPONENT,
    1,
    "tasklet_failed",
    "load",
    "ValueError",
    "no",
    "orders.py, line 12",
)
COMPLETED = LaunchReport(
    job="orders",
    instance_id=1,
    execution_id=4,
    attempt=2,
    status=BatchStatus.COMPLETED,
    exit_code="COMPLETED",
    counts=Counts(),
    failure=None,
    steps=(),
    partitions=(),
    parameters=ParameterSet(()),
    run=None,
    restart_of=None,
    took_over=None,
)


def lines(report: LaunchReport) -> list[str]:
    return list(report_lines(report, 2.5))


def step(
    node: str,
    *,
    reused: bool = False,
    exit_code: str = "COMPLETED",
    counts: Counts = NO_COUNTS,
) -> StepReport:
    row = LatestRow(
        node=node,
        step_id=1,
        version=1,
        status=BatchStatus.COMPLETED,
        exit_code=exit_code,
        counts=counts,
        checkpoint=None,
        context=None,
    )
    return StepReport(row, reused=reused)


def test_a_report_begins_with_the_outcome() -> None:
    assert lines(COMPLETED) == [
        "job orders: COMPLETED in 2.5 s (execution 4, attempt 2)"
    ]


def test_a_report_names_the_run_and_what_it_continues() -> None:
    (head, rest) = lines(evolve(COMPLETED, run=2, restart_of=3))
    assert head.endswith("(execution 4, attempt 2, run 2)")
    assert rest == "  continued execution 3"


def test_a_takeover_is_said_once() -> None:
    (_, rest) = lines(evolve(COMPLETED, restart_of=3, took_over=3))
    assert rest == "  took over execution 3, whose process had died"


def test_steps_stand_in_columns_with_their_counts() -> None:
    counts = Counts(read=2_000, written=1_999, filtered=1, committed=2)
    steps = (step("a", reused=True), step("load", exit_code="SMALL", counts=counts))
    assert lines(evolve(COMPLETED, steps=steps))[1:] == [
        "  a     reused  COMPLETED",
        "  load  run     COMPLETED  SMALL  2,000 read, 1,999 written, 1 filtered, "
        "2 chunks",
    ]


@pytest.mark.parametrize(
    ("status", "hint"),
    [
        (BatchStatus.FAILED, "mend the cause and give the same command again"),
        (BatchStatus.STOPPED, "give the same command again"),
        (BatchStatus.UNKNOWN, "cannot be continued before its outcome is resolved"),
    ],
)
def test_a_job_that_did_not_complete_says_how_to_go_on(
    status: BatchStatus, hint: str
) -> None:
    report = evolve(COMPLETED, status=status, failure=FAILURE)
    assert hint in lines(report)[-1]
    why = "load: ValueError: no [USER_COMPONENT] at orders.py, line 12"
    head = f"job 'orders' {status} (execution 4)"
    assert outcome_of(report, debug=True) == f"{head}: {why}"
    assert outcome_of(report) == f"{head}: {why}; --debug shows the traceback"


def test_a_report_leaves_the_failure_to_the_sentence_beside_it() -> None:
    report = evolve(COMPLETED, status=BatchStatus.FAILED, failure=FAILURE)
    assert "ValueError" not in "".join(lines(report))


def test_what_is_over_is_not_answered_by_the_same_command() -> None:
    limit = StartLimitReached("load", 1)
    failure = evolve(FAILURE, code=limit.code, type=None, message=str(limit))
    report = evolve(
        COMPLETED, status=BatchStatus.FAILED, failure=failure, run=2, over=True
    )
    assert lines(report)[-1] == (
        "  it cannot be continued: 'triolet run ... --new' runs it anew"
    )
    assert "step 'load' was started once in this job instance" in str(limit)


def test_an_unknown_outcome_names_the_command_that_resolves_it() -> None:
    report = evolve(COMPLETED, status=BatchStatus.UNKNOWN, failure=FAILURE)
    hint = "use 'triolet recover 4 --reason WHY' with --mark-failed or --abandon"
    assert lines(report)[-1].endswith(hint)
    assert str(OutcomeUnresolved(4)).endswith(hint)


def test_a_failure_without_a_message_is_told_in_words_and_not_by_its_code() -> None:
    bare = Failure(FailureCategory.STALE_RECOVERED, 1, "owner_died")
    assert failure_text(bare) == "the process that ran it has died [STALE_RECOVERED]"
    silent = evolve(FAILURE, code="reader_failed", message="", place=None)
    assert failure_text(silent) == (
        "load: ValueError raised by the reader [USER_COMPONENT]"
    )
    foreign = Failure(FailureCategory.INVARIANT, 1, "never_heard_of")
    assert failure_text(foreign) == "never heard of [INVARIANT]"


@pytest.mark.parametrize(
    ("code", "head"),
    [
        ("tasklet_failed", "load"),
        ("planner_failed", "the planner of 'load'"),
        ("before_job_listener_failed", "job listener 'load'"),
        ("after_job_listener_failed", "job listener 'load'"),
    ],
)
def test_a_failure_outside_of_steps_is_not_called_by_a_bare_name(
    code: str, head: str
) -> None:
    text = failure_text(evolve(FAILURE, code=code, message="no", place=None))
    assert text == f"{head}: ValueError: no [USER_COMPONENT]"


def test_one_thing_is_not_counted_in_the_plural() -> None:
    assert (counted(1, "item"), counted(2_000, "item")) == ("1 item", "2,000 items")
    assert counts_text(Counts(read=1, written=1, committed=1)) == (
        "1 read, 1 written, 1 chunk"
    )


def test_counts_of_a_tasklet_are_not_shown() -> None:
    assert counts_text(Counts()) == ""
    assert counts_text(Counts(read=1, rolled_back=2)) == (
        "1 read, 0 written, 0 chunks, 2 rolled back"
    )


@pytest.mark.parametrize(
    ("parameter", "text"),
    [
        (JobParameter("day", ParameterKind.STRING, "x"), "day = x"),
        (JobParameter("on", ParameterKind.BOOL, True), "on = true"),
        (
            JobParameter("n", ParameterKind.I64, 5, identifying=False),
            "n = 5 (not identifying)",
        ),
        (JobParameter("key", ParameterKind.STRING, "abc", secret=True), "key = ***"),
    ],
)
def test_a_parameter_is_written_without_secrets(
    parameter: JobParameter, text: str
) -> None:
    assert parameter_text(parameter) == text


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0.04, "0.0 s"),
        (9.94, "9.9 s"),
        (10.4, "10 s"),
        (59.4, "59 s"),
        (60.4, "1:00"),
        (187, "3:07"),
        (3723, "1:02:03"),
    ],
)
def test_a_length_of_time_is_short_to_read(seconds: float, text: str) -> None:
    assert duration(seconds) == text


def test_instants_are_utc_and_unknown_ones_a_dash() -> None:
    assert instant(1_700_000_000_999_999) == "2023-11-14 22:13:20"
    assert (instant(None), elapsed(None, 5), elapsed(5, None)) == ("-", "-", "-")
    assert elapsed(1_000_000, 3_500_000) == "2.5 s"


def test_what_others_closed_has_no_duration() -> None:
    died = Failure(FailureCategory.STALE_RECOVERED, 1, "owner_died")
    unsure = Failure(FailureCategory.UNKNOWN_COMMIT, 1, "outcome_unknown")
    assert took(1_000_000, 3_500_000, None) == "2.5 s"
    assert took(1_000_000, 3_500_000, FAILURE) == "2.5 s"
    assert took(1_000_000, 3_500_000, died) == "died"
    assert took(1_000_000, 3_500_000, evolve(died, code="recovered")) == "-"
    assert took(1_000_000, 3_500_000, unsure) == "-"


def test_columns_are_aligned_without_trailing_blanks() -> None:
    assert table([["a", "bb", ""], ["ccc", "d", ""]]) == ["a    bb", "ccc  d"]


def test_an_interruption_is_a_sentence_and_not_a_traceback(
    capsys: pytest.CaptureFixture[str],
) -> None:
    def interrupted() -> Answer:
        raise BaseExceptionGroup("tasks", [KeyboardInterrupt()])

    assert guarded(interrupted, Form(command="run")) == 130
    assert capsys.readouterr().err == (
        "triolet: interrupted; what was committed stays\n"
    )
