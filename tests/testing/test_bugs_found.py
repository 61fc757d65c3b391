"""A job that does something twice is found by every sweep, and shrunk to one line."""

import threading
from collections.abc import Callable

import pytest
import trio

from triolet.actors import Job, Runtime, Step, StepContext
from triolet.actors.testing import (
    EquivalenceError,
    Scenario,
    ScheduleError,
    StoreKind,
    business_effect,
    cancel_at_every_checkpoint,
    crash_at_every_commit,
    disturb,
    replay,
    shutdown_at_every_checkpoint,
    stop_at_every_checkpoint,
)
from triolet.actors.testing.schedules import parse

Sweeping = Callable[[Scenario], object]

INTERRUPTING = [
    cancel_at_every_checkpoint,
    stop_at_every_checkpoint,
    shutdown_at_every_checkpoint,
]
SWEEPS: list[Sweeping] = [crash_at_every_commit, *INTERRUPTING, disturb]
EACH = pytest.mark.parametrize("sweep", SWEEPS, ids=lambda sweep: sweep.__name__)


async def note(ctx: StepContext) -> None:
    await trio.lowlevel.checkpoint()


async def mail(ctx: StepContext) -> None:
    """Not safe: nothing tells the mailbox that it knows this mail already."""
    business_effect("mail", "to Ada")
    await trio.lowlevel.checkpoint()


def mailing() -> Job:
    return Job("mailing", [Step("a", note), Step("mail", mail), Step("c", note)])


def mailing_once() -> Callable[[], Job]:
    """Safe: the mailbox knows the key, in whatever process it was sent."""
    known: set[str] = set()

    async def mail_by_key(ctx: StepContext) -> None:
        if ctx.idempotency_key not in known:
            known.add(ctx.idempotency_key)
            business_effect("mail", "to Ada")
        await trio.lowlevel.checkpoint()

    steps = [Step("a", note), Step("mail", mail_by_key), Step("c", note)]
    return lambda: Job("mailing", steps)


def failure_of(sweep: Sweeping, scenario: Scenario) -> EquivalenceError:
    with pytest.raises(EquivalenceError) as caught:
        sweep(scenario)
    return caught.value


@pytest.mark.parametrize("store", StoreKind)
@EACH
def test_an_effect_that_is_repeated_is_found_and_replayed(
    sweep: Sweeping, store: StoreKind
) -> None:
    scenario = Scenario(mailing, store=store, seed=5)
    error = failure_of(sweep, scenario)
    text = str(error)
    assert f"job 'mailing' on {store}, seed 5: at " in text
    assert error.difference == (
        "the effect ('mail', 'to Ada') should take place x1, took place x2",
    )
    assert f'Replay it: replay(scenario, "{error.schedule}")' in text
    (_,) = parse(error.schedule)
    again = failure_of(lambda one: replay(one, error.schedule), scenario)
    assert again.difference == error.difference
    assert again.schedule == error.schedule


@EACH
def test_no_smaller_number_fails(sweep: Sweeping) -> None:
    scenario = Scenario(mailing)
    word, _, number = failure_of(sweep, scenario).schedule.partition("@")
    assert int(number) > 1
    for smaller in range(1, int(number)):
        replay(scenario, f"{word}@{smaller}")


def test_a_mixture_says_how_it_was_found() -> None:
    text = str(failure_of(lambda one: disturb(one, seed=3), Scenario(mailing)))
    assert " (disturb(seed=3), round " in text
    assert text == str(failure_of(lambda one: disturb(one, seed=3), Scenario(mailing)))


def test_points_that_are_drawn_are_shrunk_to_the_same_line() -> None:
    scenario = Scenario(mailing, seed=2)
    whole = failure_of(cancel_at_every_checkpoint, scenario)
    some = failure_of(lambda one: cancel_at_every_checkpoint(one, points=40), scenario)
    assert some.schedule == whole.schedule


@EACH
def test_an_effect_behind_its_idempotency_key_takes_place_once(
    sweep: Sweeping,
) -> None:
    assert "came to the undisturbed end" in str(sweep(Scenario(mailing_once)))


def test_outside_a_scenario_an_effect_is_not_noted() -> None:
    business_effect("mail")


@EACH
def test_every_sweep_takes_a_line(sweep: Callable[..., object]) -> None:
    with pytest.raises(EquivalenceError, match=r"at commit 4, die before it"):
        sweep(Scenario(mailing), only="crash-before@4")


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("", "'' is no disturbance: write KIND@NUMBER"),
        ("cancel@", "'cancel@' is no disturbance"),
        ("cancel@0", "'cancel@0' is no disturbance"),
        ("cancel@-1", "'cancel@-1' is no disturbance"),
        ("cancel@3,explode@2", "'explode@2' is no disturbance"),
        ("cancel@9999", "cancel@9999 never takes place: the run has "),
        ("cancel@3,crash-after@999", "crash-after@999 never takes place"),
    ],
)
def test_a_line_that_means_nothing_is_refused(line: str, reason: str) -> None:
    with pytest.raises(ScheduleError) as caught:
        replay(Scenario(mailing_once), line)
    assert reason in str(caught.value)


def test_to_try_nothing_is_refused() -> None:
    with pytest.raises(ValueError, match="points must be at least 1, not 0"):
        crash_at_every_commit(Scenario(mailing_once), points=0)
    with pytest.raises(ValueError, match="rounds must be at least 1, not 0"):
        disturb(Scenario(mailing_once), rounds=0)


def test_a_sweep_says_in_one_line_what_it_tried() -> None:
    scenario = Scenario(mailing_once, seed=9)
    whole = crash_at_every_commit(scenario)
    assert str(whole) == (
        f"crash_at_every_commit: job 'mailing' on memory, seed 9: {whole.points} points "
        f"came to the undisturbed end ({len(whole.commits)} commits, {whole.steps} task "
        "steps)"
    )
    some = crash_at_every_commit(scenario, points=3)
    assert f"3 points of {whole.points}, drawn by the seed, came" in str(some)
    assert "4 points, drawn by the seed, came" in str(disturb(scenario, rounds=4))


async def leave_a_task(ctx: StepContext) -> None:
    trio.lowlevel.spawn_system_task(trio.sleep_forever, name="stray")


def test_a_task_that_is_left_is_found() -> None:
    job = Job("leaving", [Step("a", leave_a_task)])
    with pytest.raises(Exception, match="tasks are left: stray"):
        Scenario(job).run()


def test_a_task_that_is_left_only_when_it_is_cancelled_is_found() -> None:
    async def sometimes(ctx: StepContext) -> None:
        try:
            await trio.sleep(1)
        except trio.Cancelled:
            await leave_a_task(ctx)
            raise

    error = failure_of(
        cancel_at_every_checkpoint, Scenario(Job("leaving", [Step("a", sometimes)]))
    )
    assert "LeftBehind: tasks are left: stray" in str(error)


def test_a_thread_that_is_left_is_found() -> None:
    end = threading.Event()
    thread = threading.Thread(target=end.wait, name="stray")
    job = Job("leaving", [Step("a", lambda ctx: thread.start())])
    try:
        with pytest.raises(Exception, match="threads are left: stray"):
            Scenario(job).run()
    finally:
        end.set()
        thread.join()


def test_a_shutdown_cancels_what_outlasts_its_deadline() -> None:
    ended: list[float] = []

    async def stubborn(ctx: StepContext) -> None:
        began = trio.current_time()
        try:
            await trio.sleep(20)
        finally:
            ended.append(trio.current_time() - began)

    step = Step("a", stubborn, on_stop="cooperate", grace=60)
    scenario = Scenario(Job("stubborn", [step]))
    shutdown_at_every_checkpoint(scenario)
    assert (min(ended), max(ended)) == (10, 20)
    ended.clear()
    stop_at_every_checkpoint(scenario)
    assert (min(ended), max(ended)) == (20, 20)


def test_a_runtime_that_goes_on_taking_work_is_found(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(Runtime, "stop", lambda runtime: None)
    error = failure_of(stop_at_every_checkpoint, Scenario(mailing_once))
    assert "IntakeOpen: the runtime took a launch after it was told to stop" in str(
        error
    )


def test_a_runtime_that_fails_to_stop_is_found(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def broken(runtime: Runtime) -> None:
        raise OSError("it cannot be stopped")

    monkeypatch.setattr(Runtime, "stop", broken)
    error = failure_of(stop_at_every_checkpoint, Scenario(mailing_once))
    assert "OSError: it cannot be stopped" in str(error)


def test_code_that_is_another_one_each_time_is_found() -> None:
    calls: list[int] = []

    async def longer_and_longer(ctx: StepContext) -> None:
        calls.append(1)
        async with trio.open_nursery() as nursery:
            for _ in calls:
                nursery.start_soon(trio.lowlevel.checkpoint)

    scenario = Scenario(Job("longer", [Step("a", longer_and_longer), Step("b", note)]))
    error = failure_of(cancel_at_every_checkpoint, scenario)
    assert "so user code is not deterministic: it consists of other" in str(error)
