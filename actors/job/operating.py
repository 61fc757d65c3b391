"""What operators do and ask, on a runtime's store; no job need run here."""

from collections.abc import Callable, Mapping
from types import MappingProxyType, NoneType

from attrs import evolve, frozen

from ...storage.commands import (
    Abandon,
    Diagnose,
    Diagnosis,
    ExecutionDetail,
    ExecutionPage,
    FindDefinition,
    ListExecutions,
    ListOperations,
    Operated,
    OperatorHistory,
    Recover,
    RequestStop,
    ShowExecution,
    Unresolved,
)
from ...storage.model.operation import Directive
from ...storage.model.status import BatchStatus
from ..kernel.liveness import is_alive
from ..kernel.storage_actor import StorageActor
from ..plan.compile import CompiledJob, compiled
from ..plan.definition import Job
from .options import check_type
from .upgrading import Upgraded, upgrade_of, upgraded

NO_EVIDENCE = bytes(32)
"""Cited of an execution that has ended: its recovery is refused, on record."""


@frozen(kw_only=True)
class Words:
    """Who asks for an operation, why, and under which id."""

    actor: str
    operation_id: str
    reason: str | None = None


def recovery_of(
    seen: Unresolved, directive: Directive, words: Words, requester: int | None = None
) -> Recover:
    """Make the recovery of an execution as it was seen.

    A process that is proved dead needs no lease to run out.
    """
    owner_id = seen.execution.owner_id
    return Recover(
        execution_id=seen.execution.id,
        expected_version=seen.evidence.version,
        evidence=seen.evidence.digest,
        directive=directive,
        requester=requester,
        dead_owner=owner_id if is_alive(seen.owner) is False else None,
        actor=words.actor,
        operation_id=words.operation_id,
        reason=words.reason,
    )


class Operator:
    """Does what operators may do; every action leaves an audit record.

    Each action takes an operation id of the caller's: sent twice under one id, an action
    is done once, and answered twice with what came of it.
    """

    def __init__(
        self, store: StorageActor, owner_id: int, new_id: Callable[[], int]
    ) -> None:
        self._store = store
        self._owner_id = owner_id
        self._new_id = new_id

    async def request_stop(
        self,
        execution_id: int,
        *,
        actor: str,
        reason: str | None = None,
        operation_id: str | None = None,
        expected_version: int | None = None,
    ) -> Operated:
        """Ask for an execution's stop, wherever it runs; it is seen within seconds.

        Args:
            execution_id: Of the execution. One that is STOPPING or has ended stays as
                it is.
            actor: Who asks; nobody checks it.
            reason: Why.
            operation_id: Chosen by the caller; None: a random one.
            expected_version: Refuse when the execution has changed since.

        Raises:
            ExecutionNotFound: It is not in this store.
            ActionNotAllowed: It is UNKNOWN.
            StaleVersion: It has another version than expected.
            OperationIdConflict: The id was used for another request.
            InvalidValue: A word is empty, too long or cannot be printed.
        """
        return await self._store.ask(
            RequestStop(
                execution_id=execution_id,
                actor=actor,
                operation_id=self._id(operation_id),
                reason=reason,
                expected_version=expected_version,
            )
        )

    async def abandon(
        self,
        execution_id: int,
        *,
        actor: str,
        reason: str | None = None,
        operation_id: str | None = None,
        expected_version: int | None = None,
    ) -> Operated:
        """Close the instance of a STOPPED or FAILED execution for good.

        The arguments and errors are those of `request_stop`; also:

        Raises:
            ActionNotAllowed: It is active, UNKNOWN or COMPLETED.
            NotLatestAttempt: A later execution has continued it.
        """
        return await self._store.ask(
            Abandon(
                execution_id=execution_id,
                actor=actor,
                operation_id=self._id(operation_id),
                reason=reason,
                expected_version=expected_version,
            )
        )

    async def recover(
        self,
        execution_id: int,
        directive: Directive,
        *,
        actor: str,
        reason: str | None = None,
        operation_id: str | None = None,
        seen: Unresolved | None = None,
    ) -> Operated:
        """Decide what an execution came to that is UNKNOWN, or whose owner is gone.

        Args:
            execution_id: Of the execution.
            directive: What becomes of it.
            actor: Who decides; nobody checks it.
            reason: Why.
            operation_id: Chosen by the caller; None: a random one.
            seen: What `diagnose` gave: the recovery is refused when the execution has
                changed since. None: as it is now.

        Raises:
            ExecutionNotFound: It is not in this store.
            ActionNotAllowed: It has ended.
            AlreadyRunning: Its owner's lease runs, and the owner may be alive.
            EvidenceChanged: It is not as it was seen.
            StaleVersion: The same, of its version.
            OperationIdConflict: The id was used for another request.
            InvalidValue: A word is empty, too long or cannot be printed.
        """
        words = Words(actor=actor, operation_id=self._id(operation_id), reason=reason)
        if seen is None:
            found = await self.diagnose(execution_id)
            seen = found.unresolved[0] if found.unresolved else None
        if seen is not None:
            command = recovery_of(seen, directive, words, self._owner_id)
            return await self._store.ask(command)
        detail = await self._store.ask(ShowExecution(execution_id))
        return await self._store.ask(
            recovery_of_ended(execution_id, detail.execution.version, directive, words)
        )

    async def diagnose(self, execution_id: int | None = None) -> Diagnosis:
        """Give the executions that have not ended, with all that tells whether they will.

        Args:
            execution_id: Only this one; None: the oldest 100.

        Raises:
            ExecutionNotFound: It is not in this store.
        """
        return await self._store.ask(Diagnose(execution_id))

    async def operations(self, execution_id: int) -> OperatorHistory:
        """Give what operators did to one execution.

        Raises:
            ExecutionNotFound: It is not in this store.
        """
        return await self._store.ask(ListOperations(execution_id))

    async def list(
        self,
        *,
        job: str | None = None,
        status: BatchStatus | None = None,
        limit: int = 50,
        before: int | None = None,
    ) -> ExecutionPage:
        """List executions of the store, newest first.

        Args:
            job: Only of the job of that name.
            status: Only with this status.
            limit: How many at most.
            before: Only executions with a lower number, to go on with the next page.

        Raises:
            InvalidValue: An argument is of another type.
        """
        check_type(job, (str, NoneType), "job")
        check_type(status, (BatchStatus, NoneType), "status")
        check_type(limit, int, "limit")
        check_type(before, (int, NoneType), "before")
        return await self._store.ask(ListExecutions(job, status, limit, before))

    async def show(self, execution_id: int) -> ExecutionDetail:
        """Give everything that the store knows of one execution.

        Raises:
            ExecutionNotFound: It is not in this store.
            InvalidValue: The number is none.
        """
        check_type(execution_id, int, "the number of an execution")
        return await self._store.ask(ShowExecution(execution_id))

    async def manifest(self, job: str, revision: str) -> str:
        """Give the stored manifest of a job, which code can be bound to by `assemble`.

        Args:
            job: Name of the job.
            revision: The label of the definition; `show` tells that of an execution.

        Raises:
            DefinitionUnknown: The job was never launched under that revision.
        """
        check_type(job, str, "the name of a job")
        check_type(revision, str, "the revision")
        return (await self._store.ask(FindDefinition(job, revision))).manifest

    def _id(self, given: str | None) -> str:
        return f"{self._new_id():016x}" if given is None else given

    async def upgrade(
        self,
        job: Job | CompiledJob,
        *,
        from_revision: str,
        renamed: Mapping[str, str] = MappingProxyType({}),
        key: str | None = None,
        dry_run: bool = False,
    ) -> Upgraded:
        """Let a changed job continue what it began under an earlier revision.

        An upgrade is never changed, and what is left behind is forgotten: look at it
        with *dry_run* first.

        Args:
            job: As it is now.
            from_revision: The label of the definition that earlier attempts ran.
            renamed: Earlier node id to present one; nodes that keep their id and kind
                need not be named, nodes that nothing continues are left behind.
            key: Names the upgrade; None makes a name of both revisions.
            dry_run: Only tell what would be continued, left behind and begun anew.

        Returns:
            What is continued, left behind and begun anew.

        Raises:
            DefinitionUnknown: The job was never launched under that revision.
            UpgradeConflict: The two are connected, or the key is taken, otherwise.
            InvalidValue: A node is unknown or of another kind, or nothing is left.
        """
        ready = compiled(job)
        question = FindDefinition(ready.plan.job, from_revision)
        earlier = await self._store.ask(question)
        command = upgrade_of(ready, earlier, renamed, key)
        found = upgraded(ready, earlier, command)
        if dry_run:
            return found
        done = await self._store.ask(command)
        return evolve(found, registered=True, unchanged=done.unchanged)


def recovery_of_ended(
    execution_id: int, version: int, directive: Directive, words: Words
) -> Recover:
    """Make the recovery of an execution that has ended: it will be refused, on record."""
    return Recover(
        execution_id=execution_id,
        expected_version=version,
        evidence=NO_EVIDENCE,
        directive=directive,
        actor=words.actor,
        operation_id=words.operation_id,
        reason=words.reason,
    )
