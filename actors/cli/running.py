"""``triolet run``: one launch, with signals, progress and a report."""

import logging
import sys
import time
from collections.abc import Mapping, Sequence
from functools import partial
from io import StringIO

import trio
from attrs import frozen

from ...storage.commands import ShowExecution
from ...storage.model.errors import InvalidValue, TrioletError
from ...storage.model.execution import COUNT_MAX
from ..composition import open_runtime
from ..job.events import Event, EventKind
from ..job.options import RuntimeOptions, connections_for
from ..job.report import LaunchReport
from ..job.restarting import restart_of
from ..plan.arguments import parse_arguments, resolve
from ..plan.compile import CompiledJob
from ..runtime import Runtime
from .answers import Answer
from .asking import ask
from .block import terminal_size
from .exit_codes import BY_STATUS, DONE
from .failing import Form, UsageInvalid
from .output import plain
from .progress import Progress
from .reporting import outcome_of, report_lines
from .signals import Interruptions, obeyed
from .target import load_job
from .underway import Underway

PATIENCE_SECS = 0.1
"""Of the event loop, which has little else to do here."""
TICK_SECS = 0.1


@frozen(kw_only=True)
class Mode:
    """How a job is launched."""

    wait: bool
    anew: bool = False
    run: int | None = None
    restart: int | None = None
    """The execution that is restarted."""


def mode_of(*, anew: bool, run: int | None, wait: bool) -> Mode:
    """Read how a job is to be launched from the options of the command line.

    Raises:
        UsageInvalid: It is to be run anew, and a run is to be continued.
        InvalidValue: No run has that number.
    """
    if run is not None:
        if anew:
            raise UsageInvalid("choose one of --new and --run")
        if not 1 <= run <= COUNT_MAX:
            raise InvalidValue("--run", "must be the number of a run, 1 for the first")
    return Mode(anew=anew, run=run, wait=wait)


def run_job(
    target: str,
    pairs: Sequence[str],
    url: str,
    mode: Mode,
    form: Form,
) -> Answer:
    """Launch a job and report; the exit code tells how it ended.

    Raises:
        TrioletError: Whatever refused the launch, or the store failed.
    """
    with obeyed(Interruptions(form, "stopping the job")) as interruptions:
        job = load_job(target)
        underway = Underway(job)
        interruptions.about(lambda: underway.outlook, lambda: underway.left)
        given = parse_arguments(job.parameters, pairs)
        # Before the store is opened, which may make a file.
        if mode.restart is None:
            resolve(job.parameters, given)
        else:
            restart_of(ask(url, ShowExecution(mode.restart)), job, given)
        progress = _progress()
        _log_to(progress, form.debug)
        began = time.monotonic()
        launch = _Launch(url, job, given, progress, interruptions, underway)
        try:
            report = trio.run(launch.run, mode)
        finally:
            progress.end()
        seconds = time.monotonic() - began
        lines = list(report_lines(report, seconds, job.plan))
    code = BY_STATUS[report.status]
    why = None if code == DONE else outcome_of(report, debug=form.debug)
    return Answer(report, lines, code, warning=why)


@frozen
class _Launch:
    """One launch on the event loop."""

    url: str
    job: CompiledJob
    given: Mapping[str, object]
    progress: Progress
    interruptions: Interruptions
    underway: Underway

    async def run(self, mode: Mode) -> LaunchReport:
        """Launch, with signals and the clock of the progress line beside it."""
        result: LaunchReport | TrioletError
        options = RuntimeOptions(
            events=self._hear,
            patience=PATIENCE_SECS,
            connections=connections_for(self.job.connections),
        )
        async with (
            open_runtime(self.url, options) as runtime,
            trio.open_nursery() as nursery,
        ):
            self.interruptions.about_to_begin(runtime.stop)
            nursery.start_soon(self._tick)
            try:
                result = await self._launch(runtime, mode)
            except TrioletError as exc:
                result = exc
            self.interruptions.job_ended()
            nursery.cancel_scope.cancel()
        if isinstance(result, TrioletError):
            raise result
        return result

    async def _launch(self, runtime: Runtime, mode: Mode) -> LaunchReport:
        if mode.restart is not None:
            return await runtime.restart(
                mode.restart, self.job, self.given, wait=mode.wait
            )
        return await runtime.launch(
            self.job,
            self.given,
            anew=mode.anew,
            continue_run=mode.run,
            wait=mode.wait,
        )

    def _hear(self, event: Event) -> None:
        if event.kind is EventKind.JOB_STARTED:
            self.interruptions.job_began()
        self.underway.hear(event)
        self.progress(event)

    async def _tick(self) -> None:
        while True:
            await trio.sleep(TICK_SECS)
            self.progress.tick()


def _progress() -> Progress:
    # There is none where standard error is closed.
    stream = StringIO() if sys.stderr is None else sys.stderr
    size = partial(terminal_size, stream)
    return Progress(stream, time.monotonic, stream.isatty(), size)


class _Notes(logging.Handler):
    """Writes log records above the progress line."""

    def __init__(self, progress: Progress, debug: bool) -> None:
        super().__init__()
        self._progress = progress
        self._debug = debug

    def emit(self, record: logging.LogRecord) -> None:
        """Write one record; its traceback, and what the report tells, on demand."""
        try:
            text = self._text(record)
        except Exception as exc:
            # What is logged wrongly must not fail the work that logs.
            place = f"{record.filename}, line {record.lineno}"
            fault = plain(f"{type(exc).__name__}: {exc}")
            text = f"warning: a log record of {place} cannot be written: {fault}"
        if text is not None:
            self._progress.note(text)

    def _text(self, record: logging.LogRecord) -> str | None:
        if self._debug:
            return self.format(record)
        if record.name.startswith("triolet.job"):
            return None
        return f"{record.levelname.lower()}: {plain(record.getMessage())}"


def _log_to(progress: Progress, debug: bool) -> None:
    root = logging.getLogger()
    root.addHandler(_Notes(progress, debug))
    root.setLevel(logging.INFO)
