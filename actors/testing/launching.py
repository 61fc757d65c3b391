"""One launch in a process of its own, within reach of what may interrupt it."""

from collections.abc import Mapping
from typing import TypeAlias

import trio
from attrs import define, field

from ...storage.backend import Backend
from ...storage.model.errors import TrioletError
from ..composition import open_runtime
from ..job.launch import ShuttingDown
from ..job.options import RuntimeOptions
from ..job.report import LaunchReport
from ..plan.compile import CompiledJob
from ..plan.definition import Job
from ..runtime import Runtime
from .interruptions import How, Steps

AnyJob: TypeAlias = Job | CompiledJob

PATIENCE_SECS = 86_400.0
"""Virtual seconds after which a launch counts as hanging."""
SHUTDOWN_SECS = 10.0
"""Virtual seconds that a shutdown leaves to everything before it cancels the rest."""

TAKEN = "the runtime took a launch after it was told to stop"


class IntakeOpen(Exception):
    """A runtime took a launch although it was being shut down."""


@define(eq=False)
class Launching:
    """A launch, with the scopes around it and its runtime.

    Args:
        job: What is launched.
        parameters: Of the launch.
        steps: Counts the task steps, and interrupts.
    """

    job: AnyJob
    parameters: Mapping[str, object]
    steps: Steps
    interrupted: bool = field(default=False, init=False)
    """Whether anything has come from outside."""
    _around_runtime: trio.CancelScope = field(factory=trio.CancelScope, init=False)
    _around_launch: trio.CancelScope = field(factory=trio.CancelScope, init=False)
    _runtime: Runtime | None = field(default=None, init=False)
    _stopped: bool = field(default=False, init=False)

    async def run(
        self, backend: Backend, options: RuntimeOptions
    ) -> LaunchReport | None:
        """Launch; give the report if there is one after an interruption.

        Raises:
            TooSlowError: The launch hangs.
            IntakeOpen: A stopped runtime went on taking work.
        """
        report = None
        with (
            trio.fail_after(PATIENCE_SECS),
            self.steps.counting(self._interrupt),
            self._around_runtime,
        ):
            async with open_runtime(backend, options) as self._runtime:
                self._heed()
                with self._around_launch:
                    try:
                        report = await self._launch(self._runtime)
                    except ShuttingDown:
                        if not self._stopped:
                            raise
                await self._try_intake(self._runtime)
        return report

    async def _launch(self, runtime: Runtime) -> LaunchReport:
        return await runtime.launch(self.job, self.parameters)

    async def _try_intake(self, runtime: Runtime) -> None:
        if not self._stopped:
            return
        try:
            await self._launch(runtime)
        except ShuttingDown:
            return
        except TrioletError as exc:
            raise IntakeOpen(TAKEN) from exc
        raise IntakeOpen(TAKEN)

    def _interrupt(self, how: How) -> None:
        self.interrupted = True
        match how:
            case How.CANCEL:
                self._around_runtime.cancel()
            case How.CANCEL_LAUNCH:
                self._around_launch.cancel()
            case How.STOP:
                self._stop()
            case How.SHUTDOWN:
                deadline = trio.current_time() + SHUTDOWN_SECS
                self._around_launch.deadline = deadline
                self._stop()

    def _stop(self) -> None:
        self._stopped = True
        self._heed()

    def _heed(self) -> None:
        """Tell the runtime, at the latest when it is there."""
        if self._stopped and self._runtime is not None:
            self._runtime.stop()
