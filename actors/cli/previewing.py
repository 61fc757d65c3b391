"""``triolet run --dry-run``: what a launch would do, and why."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from ...storage.backend import Backend
from ...storage.commands import ShowExecution
from ...storage.model.errors import Rejection, SchemaMissing
from ...storage.model.status import BatchStatus
from ...storage.stores import (
    MEMORY,
    SQLITE,
    StoreOptions,
    open_store,
    sqlite_path,
)
from ..job.launch import Launch, launch_of
from ..job.previewing import Previewing, previewed
from ..job.restarting import restart_of
from ..plan.arguments import parse_arguments
from ..plan.preview import Preview, Verdict
from .answers import Answer
from .asking import answered, ask
from .formats import table
from .running import Mode
from .target import load_job
from .visiting import last_visits, left_out, visit_text

_WORDS = {
    Verdict.RUN: "would run",
    Verdict.REUSE: "would be reused",
    Verdict.KEEP: "would be kept",
    Verdict.ASK: "would be asked",
    Verdict.REPEAT: "would run again",
}


def preview(target: str, pairs: Sequence[str], url: str, mode: Mode) -> Answer:
    """Say what a launch would do.

    Raises:
        TrioletError: Whatever would refuse the launch.
    """
    job = load_job(target)
    given = parse_arguments(job.parameters, pairs)
    parameters: Mapping[str, object] = given
    run = mode.run
    if mode.restart is not None:
        again = restart_of(ask(url, ShowExecution(mode.restart)), job, given)
        parameters, run = again.parameters, again.run
    request = launch_of(job, parameters, anew=mode.anew, run=run, wait=mode.wait)
    try:
        absent = url.startswith(SQLITE) and not Path(sqlite_path(url)).exists()
        found = _asked(MEMORY if absent else url, request)
    except SchemaMissing as exc:
        if exc.found != 0:
            raise
        # A launch would make the schema, and it would be empty.
        found = _asked(MEMORY, request)
    return Answer(found, list(_lines(found)))


def _asked(url: str, request: Launch) -> Preview:
    backend = open_store(url, StoreOptions(read_only=True))
    try:
        return _carried_out(backend, previewed(request))
    finally:
        backend.close()


def _carried_out(backend: Backend, previewing: Previewing) -> Preview:
    try:
        question = next(previewing)
        while True:
            try:
                answer = answered(backend, question)
            except Rejection as refused:
                question = previewing.throw(refused)
            else:
                question = previewing.send(answer)
    except StopIteration as end:
        result: Preview = end.value
        return result


def _lines(found: Preview) -> Iterator[str]:
    head = f"job {found.job} would begin attempt {found.attempt}"
    if found.took_over is not None:
        head += f", taking over execution {found.took_over}, whose process has died"
    elif found.restart_of is not None:
        head += f", continuing execution {found.restart_of}"
    yield head
    shown = last_visits(found.nodes, lambda one: (one.node, one.visit))
    yield from table(
        [
            ["  " + visit_text(one.node, one.visit), _WORDS[one.verdict], one.why]
            for one in shown
        ]
    )
    yield from left_out(len(found.nodes) - len(shown))
    if found.ends is BatchStatus.COMPLETED:
        yield "and complete, if every step that runs succeeds"
    elif found.ends is not None:
        why = "" if found.why is None else f": {found.why}"
        yield f"and end {found.ends}{why}"
    elif len({node for node, _, _ in found.continuations}) == 1:
        yield "and go on as it answers:"
        yield from table(
            [[f"  {code}", f"-> {where}"] for _, code, where in found.continuations]
        )
    elif found.continuations:
        yield "and go on as they answer:"
        yield from table(
            [
                [f"  {node}", code, f"-> {where}"]
                for node, code, where in found.continuations
            ]
        )
