"""What is served: jobs by their names, compiled before anything is claimed."""

from collections.abc import Callable, Iterable

from attrs import frozen

from ...storage.model.errors import InvalidValue, TrioletError, error
from ..plan.compile import CompiledJob, compiled
from ..plan.definition import Job
from .places import place_of

_JOBS = (Job, CompiledJob)


@error
class JobNotMade(TrioletError):
    """The function that makes a job raised, or made another one."""

    code = "job_not_made"
    job: str
    reason: str

    def __str__(self) -> str:
        """Say in one sentence what is wrong, where, and how to mend it."""
        return f"the function that makes job {self.job!r} {self.reason}"


@frozen
class ServedJob:
    """A job that is served."""

    make: Callable[[], CompiledJob]
    alone: bool
    """Whether it runs once at a time, because its launches share readers or writers."""
    connections: int
    """How many it asks a runtime to have, the one for control included."""


def served_jobs(
    jobs: Iterable[Job | CompiledJob | Callable[[], Job | CompiledJob]],
) -> dict[str, ServedJob]:
    """Compile each definition once, so that mistakes are found before any launch.

    Raises:
        DefinitionError: A definition has mistakes; all are listed.
        InvalidValue: There is no job, two have one name, or one is no job.
    """
    served: dict[str, ServedJob] = {}
    for given in jobs:
        made: object = given if isinstance(given, _JOBS) else _called(given)
        if not isinstance(made, _JOBS):
            kind = type(made).__name__
            reason = f"must hold jobs or functions that return one, not {kind}"
            raise InvalidValue("what is served", reason)
        job = compiled(made)
        name = job.plan.job
        if name in served:
            raise InvalidValue(
                "what is served", f"holds two jobs with the name {name!r}"
            )
        if isinstance(given, _JOBS):
            served[name] = ServedJob(
                _constant(job), bool(job.components), job.connections
            )
        else:
            served[name] = ServedJob(
                _factory(name, given), alone=False, connections=job.connections
            )
    if not served:
        raise InvalidValue("what is served", "must hold at least one job")
    return served


def _called(given: object) -> object:
    return given() if callable(given) else given


def _constant(job: CompiledJob) -> Callable[[], CompiledJob]:
    return lambda: job


def _factory(
    name: str, make: Callable[[], Job | CompiledJob]
) -> Callable[[], CompiledJob]:
    def made() -> CompiledJob:
        try:
            job = make()
        except Exception as exc:
            place = place_of(exc)
            where = "" if place is None else f" ({place})"
            raise JobNotMade(name, f"raised {type(exc).__name__}{where}") from exc
        ready = compiled(job)
        if ready.plan.job != name:
            raise JobNotMade(name, f"made job {ready.plan.job!r} instead")
        return ready

    return made
