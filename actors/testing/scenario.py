"""A scenario: one job, launched like a story, the same way every time."""

from collections.abc import Callable, Mapping, Sequence
from typing import TypeAlias

from attrs import define, field, frozen
from attrs.validators import ge

from ...storage.commands import InstanceComplete
from ...storage.model.status import BatchStatus
from ..job.options import LEASE_SECS
from ..job.report import LaunchReport
from ..plan.compile import CompiledJob, compile_job
from ..plan.definition import Job
from .equivalence import Ending
from .faults import Fault, Wire
from .interruptions import Interruption, Steps
from .launching import AnyJob, Launching
from .stage import ProcessDied, Stage, StoreKind, open_stage

World: TypeAlias = AnyJob | Callable[[], AnyJob]
Disturbance: TypeAlias = Fault | Interruption


def _store_kind(word: str) -> StoreKind:
    return StoreKind(word)


def _source(job: AnyJob | Callable[[], World]) -> Callable[[], World]:
    return job if callable(job) else lambda: job


@frozen(kw_only=True)
class Interrupted:
    """A launch that was interrupted and did not die."""

    report: LaunchReport | None
    """None when the launch was cancelled or refused."""
    ending: Ending
    """What it left."""


@frozen(kw_only=True)
class Run:
    """What happened in one run of a scenario."""

    ending: Ending
    commits: tuple[str, ...]
    """What was sent to be committed, in words, over all launches."""
    steps: tuple[str, ...]
    """The names of the tasks that made the task steps, over all launches."""
    reports: tuple[LaunchReport, ...]
    """Of the launches that came to an end and were not interrupted."""
    interrupted: tuple[Interrupted, ...]
    crashes: int
    """How many launches died."""
    reached: tuple[Disturbance, ...]
    """The disturbances that took place, in their order."""


@frozen
class Scenario:
    """One job and how it is launched.

    A run launches the job until it is COMPLETED, at most *launches* times; a launch
    that died or was interrupted is repeated.

    Args:
        job: The definition, or a function that makes it, called once for every run: so
            user code may have a state. What the function gives may be such a function
            again, which is then called for every launch: then the outer one makes the
            world outside, and the inner one what a process makes anew.
        parameters: Of the launch.
        store: ``"memory"`` or ``"sqlite"``, a file in a temporary folder.
        seed: Of every random choice: of ids, of the order in which tasks that are ready
            are run, of the points that a sweep tries when it does not try all.
        launches: How many launches the story has: more than one for a job that fails
            or stops first.
        lease: Seconds that a launch waits until it takes over from one that died.

    Runs are made outside of any trio run.
    """

    job: Callable[[], World] = field(converter=_source)
    parameters: Mapping[str, object] = field(factory=dict, kw_only=True)
    store: StoreKind = field(
        default=StoreKind.MEMORY, kw_only=True, converter=_store_kind
    )
    seed: int = field(default=0, kw_only=True)
    launches: int = field(default=1, kw_only=True, validator=ge(1))
    lease: float = field(default=LEASE_SECS, kw_only=True)

    @property
    def name(self) -> str:
        """The name of the job."""
        world = self.job()
        job = world() if callable(world) else world
        return job.name if isinstance(job, Job) else job.job

    def run(self, *disturbances: Disturbance) -> Run:
        """Play the story once, on a fresh store.

        Args:
            disturbances: What happens to it.
        """
        reached: list[Disturbance] = []
        faults = [one for one in disturbances if isinstance(one, Fault)]
        others = [one for one in disturbances if isinstance(one, Interruption)]
        wire, steps = Wire(faults, reached.append), Steps(others, reached.append)
        with open_stage(self.store, self.seed, self.lease, wire) as stage:
            story = _Story(self, stage, steps)
            story.play()
            ending = stage.ending()
        return Run(
            ending=ending,
            commits=tuple(wire.commits),
            steps=tuple(steps.names),
            reports=tuple(story.reports),
            interrupted=tuple(story.interrupted),
            crashes=story.crashes,
            reached=tuple(reached),
        )


@define(eq=False)
class _Story:
    """The launches of one run."""

    scenario: Scenario
    stage: Stage
    steps: Steps
    reports: list[LaunchReport] = field(factory=list, init=False)
    interrupted: list[Interrupted] = field(factory=list, init=False)
    crashes: int = field(default=0, init=False)

    def play(self) -> None:
        world = self.scenario.job()
        job = world if callable(world) else _compiled_once(world)
        while not self._has_ended():
            launching = Launching(job(), self.scenario.parameters, self.steps)
            try:
                report = self.stage.process(launching.run)
            except InstanceComplete:
                return
            except ProcessDied:
                self.crashes += 1
                continue
            if launching.interrupted:
                left = Interrupted(report=report, ending=self.stage.ending())
                self.interrupted.append(left)
            elif report is not None:
                self.reports.append(report)

    def _has_ended(self) -> bool:
        return _complete(self.reports) or len(self.reports) >= self.scenario.launches


def _complete(reports: Sequence[LaunchReport]) -> bool:
    return bool(reports) and reports[-1].status is BatchStatus.COMPLETED


def _compiled_once(job: AnyJob) -> Callable[[], CompiledJob]:
    compiled = compile_job(job) if isinstance(job, Job) else job
    return lambda: compiled
