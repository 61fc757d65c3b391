"""``triolet serve``: launches what is requested, until it is told to stop."""

import logging
import time
from collections.abc import Callable, Sequence

import trio
from attrs import define, field, frozen

from ...storage.model.errors import InvalidValue, TrioletError
from ...storage.model.launch_request import RequestStatus
from ..composition import open_runtime
from ..job.options import RuntimeOptions, connections_for
from ..job.served_jobs import served_jobs
from ..job.serving import MAX_RUNNING_MAX, ServedRequest
from ..job.wording import failure_summary
from ..plan.compile import CompiledJob
from ..plan.definition import Job
from .answers import Answer
from .failing import Form
from .output import complain, emit, plain
from .requesting import refuse_memory
from .signals import Interruptions, obeyed
from .target import load_maker

HELD = "given back"
"""How a request is called that somebody else may claim."""
_OUTLOOK = "whoever serves next takes over what ran"


@frozen(kw_only=True)
class Service:
    """How requests are served."""

    max_running: int
    once: bool
    form: Form

    @property
    def quiet(self) -> bool:
        """Whether nothing is printed but the answer."""
        return self.form.json


@define
class Served:
    """How many requests came to what."""

    done: int = 0
    refused: int = 0
    given_back: int = 0

    def count(self, one: ServedRequest) -> None:
        """Take in one more."""
        match one.status:
            case RequestStatus.DONE:
                self.done += 1
            case RequestStatus.REFUSED:
                self.refused += 1
            case _:
                self.given_back += 1


@define
class _Serving:
    """One serving on the event loop."""

    url: str
    jobs: Sequence[Job | CompiledJob | Callable[[], Job | CompiledJob]]
    connections: int
    service: Service
    interruptions: Interruptions
    served: Served = field(factory=Served)

    async def run(self) -> None:
        """Serve, and say what came of each request."""
        failed: TrioletError | None = None
        options = RuntimeOptions(connections=self.connections)
        async with open_runtime(self.url, options) as runtime:
            self.interruptions.about_to_begin(runtime.stop)
            self.interruptions.job_began()
            if not self.service.quiet:
                complain("serving; Ctrl-C stops what runs and gives it back")
            try:
                await runtime.serve(
                    self.jobs,
                    max_running=self.service.max_running,
                    until_idle=self.service.once,
                    ended=self._ended,
                )
            except TrioletError as exc:
                failed = exc
            self.interruptions.job_ended()
        if failed is not None:
            raise failed

    def _ended(self, one: ServedRequest) -> None:
        self.served.count(one)
        if not self.service.quiet:
            emit([sentence_of(one)])


def sentence_of(one: ServedRequest) -> str:
    """Say what came of a request."""
    request = one.request
    head = f"request {request.id}: job {request.job}"
    if one.refusal is not None:
        return f"{head} was refused: {one.refusal.message}"
    if one.report is None:
        ending = "was ended before" if one.status is RequestStatus.DONE else HELD
        return f"{head} {ending}"
    back = f", {HELD}" if one.status is RequestStatus.REQUESTED else ""
    failure = one.report.failure
    why = "" if failure is None else f": {failure_summary(failure)}"
    execution = one.report.execution_id
    return f"{head} is {one.report.status} (execution {execution}){back}{why}"


class _Notes(logging.Handler):
    """Writes warnings to standard error; a job's failures are in its report."""

    def emit(self, record: logging.LogRecord) -> None:
        """Write one record."""
        if not record.name.startswith("triolet.job"):
            complain(f"{record.levelname.lower()}: {plain(record.getMessage())}")


def serve(targets: Sequence[str], url: str, service: Service) -> Answer:
    """Serve until a signal comes, or until nothing is left to do.

    Raises:
        TrioletError: A target is no job, or the store failed.
    """
    if not 1 <= service.max_running <= MAX_RUNNING_MAX:
        raise InvalidValue("--max", f"must be 1 to {MAX_RUNNING_MAX}")
    refuse_memory(url)
    stopping = Interruptions(
        service.form, "stopping: what runs is stopped and given back"
    )
    with obeyed(stopping) as interruptions:
        jobs = [load_maker(target) for target in targets]
        # Before the store is opened, which may make a file.
        known = served_jobs(jobs).values()
        needed = max(one.connections for one in known)
        logging.getLogger().addHandler(_Notes(logging.WARNING))
        serving = _Serving(url, jobs, connections_for(needed), service, interruptions)
        interruptions.about(lambda: _OUTLOOK, lambda: serving.served)
        began = time.monotonic()
        trio.run(serving.run)
        seconds = time.monotonic() - began
    counts = serving.served
    line = (
        f"served for {seconds:.1f} s: {counts.done} done, {counts.refused} refused, "
        f"{counts.given_back} {HELD}"
    )
    return Answer(counts, [line])
