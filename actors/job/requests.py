"""Launch requests, made, withdrawn and listed through a runtime."""

from collections.abc import Mapping

from ...storage.commands.requesting import (
    LaunchPage,
    LaunchWithdrawn,
    ListLaunches,
    WithdrawLaunch,
)
from ...storage.model.launch_request import RequestStatus
from ..plan.compile import CompiledJob, compiled
from ..plan.definition import Job
from .enqueuing import merged, request_to_launch
from .operating import Operator


class Requester(Operator):
    """Asks for launches; see also `enqueue`, for transactions of the caller's own."""

    async def enqueue(
        self,
        job: Job | CompiledJob,
        parameters: Mapping[str, object] | None = None,
        /,
        *,
        anew: bool = False,
        **named: object,
    ) -> int:
        """Ask for a launch by whoever serves the job on this store; see `serve`.

        To do it in a database transaction of your own, use the function `enqueue`.

        Args:
            job: The definition; the request keeps its name and the parameters.
            parameters: As for `launch`.
            anew: As for `launch`.
            named: More of them.

        Returns:
            The number of the request.

        Raises:
            DefinitionError: The definition has mistakes; all are listed.
            InvalidParameter: A parameter does not fit, or it is secret, and so the
                request cannot hold it.
            StoreError: The store failed.
        """
        given = merged({} if parameters is None else parameters, named)
        asked = await self._store.ask(
            request_to_launch(compiled(job), given, anew=anew)
        )
        self.requested()
        return asked.request_id

    async def withdraw(
        self, request_id: int, *, actor: str, reason: str | None = None
    ) -> LaunchWithdrawn:
        """Take back a launch request that nobody works on.

        One that was given back may be withdrawn, too: the execution that began for it
        stays as it is.

        Args:
            request_id: Of the request. One that is WITHDRAWN stays as it is.
            actor: Who asks; nobody checks it. The request keeps it, and the reason.
            reason: Why.

        Raises:
            RequestNotFound: It is not in this store.
            RequestNotWaiting: Somebody works on it, or it has ended.
            InvalidValue: A word is empty, too long or cannot be printed.
        """
        withdrawn = await self._store.ask(
            WithdrawLaunch(request_id=request_id, actor=actor, reason=reason)
        )
        # The next request for the same instance may be claimed now.
        self.requested()
        return withdrawn

    async def requests(
        self,
        *,
        job: str | None = None,
        status: RequestStatus | None = None,
        limit: int = 50,
        before: int | None = None,
    ) -> LaunchPage:
        """List launch requests, newest first; the arguments are those of `list`."""
        return await self._store.ask(ListLaunches(job, status, limit, before))

    def requested(self) -> None:
        """Take in that there is a launch request; whoever serves looks at once."""
