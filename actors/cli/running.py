"""``triolet run``: one launch, with signals, progress and a report."""

import logging
import os
import shutil
import signal
import sys
import time
from collections.abc import AsyncIterator, Mapping, Sequence

import trio

from ...storage.model.errors import TrioletError
from ..job.report import LaunchReport
from ..plan.arguments import parse_arguments
from ..plan.compile import CompiledJob, compile_job
from ..runtime import Runtime, RuntimeOptions, open_runtime
from .exit_codes import BY_STATUS, DONE, SECOND_SIGNAL
from .failing import complain
from .progress import Progress
from .reporting import outcome_of, report_lines
from .target import load_job

SIGNALS = (signal.SIGINT, signal.SIGTERM)
PATIENCE_SECS = 0.1
"""Of the event loop, which has nothing else to do here than to look for signals."""


def run_job(
    target: str,
    pairs: Sequence[str],
    url: str,
    *,
    anew: bool,
    wait: bool,
    debug: bool,
) -> int:
    """Launch a job and report; the exit code tells how it ended.

    Raises:
        TrioletError: Whatever refused the launch, or the store failed.
    """
    job = compile_job(load_job(target))
    given = parse_arguments(job.parameters, pairs)
    progress = _progress()
    _log_to(progress, debug)
    options = RuntimeOptions(events=progress, patience=PATIENCE_SECS)

    async def main() -> LaunchReport:
        with trio.open_signal_receiver(*SIGNALS) as signals:
            async with open_runtime(url, options) as runtime:
                return await _launch(runtime, job, given, signals, anew=anew, wait=wait)

    began = time.monotonic()
    report = trio.run(main)
    for line in report_lines(report, time.monotonic() - began):
        print(line)
    code = BY_STATUS[report.status]
    if code != DONE:
        sys.stdout.flush()
        complain(outcome_of(report))
    return code


async def _launch(
    runtime: Runtime,
    job: CompiledJob,
    given: Mapping[str, object],
    signals: AsyncIterator[int],
    *,
    anew: bool,
    wait: bool,
) -> LaunchReport:
    result: LaunchReport | TrioletError
    async with trio.open_nursery() as nursery:
        nursery.start_soon(_obey, signals, runtime)
        try:
            result = await runtime.launch(job, given, anew=anew, wait=wait)
        except TrioletError as exc:
            result = exc
        nursery.cancel_scope.cancel()
    if isinstance(result, TrioletError):
        raise result
    return result


async def _obey(signals: AsyncIterator[int], runtime: Runtime) -> None:
    """Stop the job at the first signal, end the process at the second.

    Ending at once loses nothing: what is durable stays, and the next launch takes over.
    A signal before the job has begun finds nothing to stop and ends the process, too.
    """
    async for _ in signals:
        if not runtime.running:
            _end_now("ended before the job began")
        complain("stopping the job; a second Ctrl-C ends the process at once")
        runtime.stop()
        break
    async for _ in signals:
        _end_now("ended at once; the next launch continues from the last commit")


def _end_now(sentence: str) -> None:
    complain(sentence)
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(SECOND_SIGNAL)


def _progress() -> Progress:
    width = shutil.get_terminal_size().columns
    return Progress(sys.stderr, time.monotonic, sys.stderr.isatty(), width)


class _Notes(logging.Handler):
    """Writes log records above the progress line."""

    def __init__(self, progress: Progress, debug: bool) -> None:
        super().__init__()
        self._progress = progress
        self._debug = debug

    def emit(self, record: logging.LogRecord) -> None:
        """Write one record, its traceback only on demand."""
        if not self._debug:
            record.exc_info = record.exc_text = None
        self._progress.note(f"{record.levelname.lower()}: {self.format(record)}")


def _log_to(progress: Progress, debug: bool) -> None:
    root = logging.getLogger()
    root.addHandler(_Notes(progress, debug))
    root.setLevel(logging.INFO)
    if not debug:
        # The report tells what failed; the log would say it twice.
        logging.getLogger("triolet.job").setLevel(logging.CRITICAL)
