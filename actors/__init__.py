"""Triolet: durable batch jobs as trio actors.

Everything that a program needs to describe jobs, run them and read what came of them::

    job = Job("settlement", steps=[Step("download", download), Step("report", report)])

    async with open_runtime("sqlite:///triolet.db") as runtime:
        report = await runtime.launch(job, day="2026-11-30")

A name is imported when it is first used, so that importing the face costs nothing.
"""

from ..storage.faces import lazy_face
from .homes import HOMES

# As in typing, whose import costs more than all the rest.
TYPE_CHECKING = False

if TYPE_CHECKING:
    from ..storage.commands import ActionNotAllowed as ActionNotAllowed
    from ..storage.commands import AlreadyRunning as AlreadyRunning
    from ..storage.commands import DefinitionDrift as DefinitionDrift
    from ..storage.commands import DefinitionUnknown as DefinitionUnknown
    from ..storage.commands import Diagnosis as Diagnosis
    from ..storage.commands import DuplicateStep as DuplicateStep
    from ..storage.commands import EvidenceChanged as EvidenceChanged
    from ..storage.commands import ExecutionDetail as ExecutionDetail
    from ..storage.commands import ExecutionLine as ExecutionLine
    from ..storage.commands import ExecutionNotFound as ExecutionNotFound
    from ..storage.commands import ExecutionPage as ExecutionPage
    from ..storage.commands import IncompatibleDefinition as IncompatibleDefinition
    from ..storage.commands import InstanceAbandoned as InstanceAbandoned
    from ..storage.commands import InstanceComplete as InstanceComplete
    from ..storage.commands import LeaseLost as LeaseLost
    from ..storage.commands import NotLatestAttempt as NotLatestAttempt
    from ..storage.commands import NotRestartable as NotRestartable
    from ..storage.commands import Operated as Operated
    from ..storage.commands import OperationIdConflict as OperationIdConflict
    from ..storage.commands import OperatorHistory as OperatorHistory
    from ..storage.commands import OutcomeUnresolved as OutcomeUnresolved
    from ..storage.commands import OwnerUnknown as OwnerUnknown
    from ..storage.commands import PartitionStale as PartitionStale
    from ..storage.commands import PlanUnknown as PlanUnknown
    from ..storage.commands import RunUnknown as RunUnknown
    from ..storage.commands import StaleVersion as StaleVersion
    from ..storage.commands import StartLimitReached as StartLimitReached
    from ..storage.commands import StepUnknown as StepUnknown
    from ..storage.commands import Unresolved as Unresolved
    from ..storage.commands import UpgradeConflict as UpgradeConflict
    from ..storage.commands import WriteFailed as WriteFailed
    from ..storage.commands.requesting import LaunchLost as LaunchLost
    from ..storage.commands.requesting import LaunchPage as LaunchPage
    from ..storage.commands.requesting import LaunchWithdrawn as LaunchWithdrawn
    from ..storage.commands.requesting import RequestNotFound as RequestNotFound
    from ..storage.commands.requesting import RequestNotWaiting as RequestNotWaiting
    from ..storage.model.errors import CommitOutcomeUnknown as CommitOutcomeUnknown
    from ..storage.model.errors import CorruptRecord as CorruptRecord
    from ..storage.model.errors import DefinitionError as DefinitionError
    from ..storage.model.errors import DriverMissing as DriverMissing
    from ..storage.model.errors import (
        InsufficientPoolCapacity as InsufficientPoolCapacity,
    )
    from ..storage.model.errors import InternalError as InternalError
    from ..storage.model.errors import InvalidName as InvalidName
    from ..storage.model.errors import InvalidParameter as InvalidParameter
    from ..storage.model.errors import InvalidValue as InvalidValue
    from ..storage.model.errors import Problem as Problem
    from ..storage.model.errors import Rejection as Rejection
    from ..storage.model.errors import SchemaMissing as SchemaMissing
    from ..storage.model.errors import SchemaTooNew as SchemaTooNew
    from ..storage.model.errors import StoreError as StoreError
    from ..storage.model.errors import StoreGone as StoreGone
    from ..storage.model.errors import StoreLocked as StoreLocked
    from ..storage.model.errors import StoreUnavailable as StoreUnavailable
    from ..storage.model.errors import StoreUnusable as StoreUnusable
    from ..storage.model.errors import TrioletError as TrioletError
    from ..storage.model.errors import UndeclaredCapability as UndeclaredCapability
    from ..storage.model.execution import Counts as Counts
    from ..storage.model.execution import Failure as Failure
    from ..storage.model.launch_request import LaunchRefusal as LaunchRefusal
    from ..storage.model.launch_request import LaunchRequest as LaunchRequest
    from ..storage.model.launch_request import RequestStatus as RequestStatus
    from ..storage.model.launch_request import Withdrawal as Withdrawal
    from ..storage.model.operation import Directive as Directive
    from ..storage.model.operation import Operation as Operation
    from ..storage.model.status import BatchStatus as BatchStatus
    from ..storage.model.status import FailureCategory as FailureCategory
    from ..storage.model.status import IllegalTransition as IllegalTransition
    from ..storage.model.status import RestartNeedsNewAttempt as RestartNeedsNewAttempt
    from .composition import open_runtime as open_runtime
    from .items import ChunkKey as ChunkKey
    from .items import CsvCharacterIllegal as CsvCharacterIllegal
    from .items import CsvColumnAmbiguous as CsvColumnAmbiguous
    from .items import CsvColumnMissing as CsvColumnMissing
    from .items import CsvEncodingWrong as CsvEncodingWrong
    from .items import CsvError as CsvError
    from .items import CsvFieldTooLarge as CsvFieldTooLarge
    from .items import CsvFileChanged as CsvFileChanged
    from .items import CsvFileMissing as CsvFileMissing
    from .items import CsvFileUnusable as CsvFileUnusable
    from .items import CsvHeaderMissing as CsvHeaderMissing
    from .items import CsvMemberUnclear as CsvMemberUnclear
    from .items import CsvQuoteMisplaced as CsvQuoteMisplaced
    from .items import CsvQuoteUnclosed as CsvQuoteUnclosed
    from .items import CsvReader as CsvReader
    from .items import CsvRecordRagged as CsvRecordRagged
    from .items import Cursor as Cursor
    from .items import Delivery as Delivery
    from .items import JsonObject as JsonObject
    from .items import QueryChanged as QueryChanged
    from .items import QueryKeyInvalid as QueryKeyInvalid
    from .items import QueryReader as QueryReader
    from .items import Reader as Reader
    from .items import SizedReader as SizedReader
    from .items import TableError as TableError
    from .items import TableMismatch as TableMismatch
    from .items import TableMissing as TableMissing
    from .items import TableRowRefused as TableRowRefused
    from .items import TableWriter as TableWriter
    from .items import Writer as Writer
    from .job.asyncio_tasklet import asyncio_tasklet as asyncio_tasklet
    from .job.boundary import OutcomeUnknown as OutcomeUnknown
    from .job.context import BranchObservation as BranchObservation
    from .job.context import DeciderContext as DeciderContext
    from .job.context import JobContext as JobContext
    from .job.context import JobOutcome as JobOutcome
    from .job.context import Observation as Observation
    from .job.context import Partition as Partition
    from .job.context import PlannerContext as PlannerContext
    from .job.context import SplitObservation as SplitObservation
    from .job.context import StepContext as StepContext
    from .job.context import StepOutcome as StepOutcome
    from .job.enqueuing import enqueue as enqueue
    from .job.events import Event as Event
    from .job.events import EventKind as EventKind
    from .job.events import EventSink as EventSink
    from .job.launch import ComponentsInUse as ComponentsInUse
    from .job.launch import LeaseExpired as LeaseExpired
    from .job.launch import RuntimeLeft as RuntimeLeft
    from .job.launch import ShuttingDown as ShuttingDown
    from .job.logs import Correlated as Correlated
    from .job.options import RuntimeOptions as RuntimeOptions
    from .job.report import JobFailed as JobFailed
    from .job.report import LaunchReport as LaunchReport
    from .job.report import StepNotReported as StepNotReported
    from .job.restarting import ChildExecution as ChildExecution
    from .job.restarting import OtherInstance as OtherInstance
    from .job.served_jobs import JobNotMade as JobNotMade
    from .job.serving import ServedRequest as ServedRequest
    from .job.upgrading import Upgraded as Upgraded
    from .kernel.inspecting import Activity as Activity
    from .kernel.inspecting import ActorKind as ActorKind
    from .kernel.inspecting import ActorState as ActorState
    from .plan.actions import Overridden as Overridden
    from .plan.actions import PartitionReport as PartitionReport
    from .plan.actions import StepReport as StepReport
    from .plan.assembly import assemble as assemble
    from .plan.assembly_errors import AssemblyError as AssemblyError
    from .plan.assembly_errors import ComponentMismatch as ComponentMismatch
    from .plan.assembly_errors import DuplicateBinding as DuplicateBinding
    from .plan.assembly_errors import FactoryFailed as FactoryFailed
    from .plan.assembly_errors import JobNameMismatch as JobNameMismatch
    from .plan.assembly_errors import ManifestUnsupported as ManifestUnsupported
    from .plan.assembly_errors import MissingBinding as MissingBinding
    from .plan.assembly_errors import StepNameMismatch as StepNameMismatch
    from .plan.assembly_errors import WrongNodeKind as WrongNodeKind
    from .plan.compile import CompiledJob as CompiledJob
    from .plan.compile import compile_job as compile_job
    from .plan.definition import COMPLETE as COMPLETE
    from .plan.definition import FAIL as FAIL
    from .plan.definition import FILTERED as FILTERED
    from .plan.definition import STOP as STOP
    from .plan.definition import Chunk as Chunk
    from .plan.definition import Decision as Decision
    from .plan.definition import Exit as Exit
    from .plan.definition import FailurePolicy as FailurePolicy
    from .plan.definition import InFlight as InFlight
    from .plan.definition import Job as Job
    from .plan.definition import JobListener as JobListener
    from .plan.definition import Node as Node
    from .plan.definition import OnStop as OnStop
    from .plan.definition import Parameter as Parameter
    from .plan.definition import PartitionedStep as PartitionedStep
    from .plan.definition import Split as Split
    from .plan.definition import Step as Step
    from .plan.definition import StepListener as StepListener
    from .plan.definition import Stop as Stop
    from .plan.job_steps import FromParent as FromParent
    from .plan.job_steps import JobStep as JobStep
    from .plan.made import Factory as Factory
    from .plan.one_step import ChunkJob as ChunkJob
    from .plan.one_step import TaskletJob as TaskletJob
    from .runtime import Runtime as Runtime
    from .runtime import ShutdownReport as ShutdownReport


__all__ = [
    "COMPLETE",
    "FAIL",
    "FILTERED",
    "STOP",
    "ActionNotAllowed",
    "Activity",
    "ActorKind",
    "ActorState",
    "AlreadyRunning",
    "AssemblyError",
    "BatchStatus",
    "BranchObservation",
    "ChildExecution",
    "Chunk",
    "ChunkJob",
    "ChunkKey",
    "CommitOutcomeUnknown",
    "CompiledJob",
    "ComponentMismatch",
    "ComponentsInUse",
    "Correlated",
    "CorruptRecord",
    "Counts",
    "CsvCharacterIllegal",
    "CsvColumnAmbiguous",
    "CsvColumnMissing",
    "CsvEncodingWrong",
    "CsvError",
    "CsvFieldTooLarge",
    "CsvFileChanged",
    "CsvFileMissing",
    "CsvFileUnusable",
    "CsvHeaderMissing",
    "CsvMemberUnclear",
    "CsvQuoteMisplaced",
    "CsvQuoteUnclosed",
    "CsvReader",
    "CsvRecordRagged",
    "Cursor",
    "DeciderContext",
    "Decision",
    "DefinitionDrift",
    "DefinitionError",
    "DefinitionUnknown",
    "Delivery",
    "Diagnosis",
    "Directive",
    "DriverMissing",
    "DuplicateBinding",
    "DuplicateStep",
    "Event",
    "EventKind",
    "EventSink",
    "EvidenceChanged",
    "ExecutionDetail",
    "ExecutionLine",
    "ExecutionNotFound",
    "ExecutionPage",
    "Exit",
    "Factory",
    "FactoryFailed",
    "Failure",
    "FailureCategory",
    "FailurePolicy",
    "FromParent",
    "IllegalTransition",
    "InFlight",
    "IncompatibleDefinition",
    "InstanceAbandoned",
    "InstanceComplete",
    "InsufficientPoolCapacity",
    "InternalError",
    "InvalidName",
    "InvalidParameter",
    "InvalidValue",
    "Job",
    "JobContext",
    "JobFailed",
    "JobListener",
    "JobNameMismatch",
    "JobNotMade",
    "JobOutcome",
    "JobStep",
    "JsonObject",
    "LaunchLost",
    "LaunchPage",
    "LaunchRefusal",
    "LaunchReport",
    "LaunchRequest",
    "LaunchWithdrawn",
    "LeaseExpired",
    "LeaseLost",
    "ManifestUnsupported",
    "MissingBinding",
    "Node",
    "NotLatestAttempt",
    "NotRestartable",
    "Observation",
    "OnStop",
    "Operated",
    "Operation",
    "OperationIdConflict",
    "OperatorHistory",
    "OtherInstance",
    "OutcomeUnknown",
    "OutcomeUnresolved",
    "Overridden",
    "OwnerUnknown",
    "Parameter",
    "Partition",
    "PartitionReport",
    "PartitionStale",
    "PartitionedStep",
    "PlanUnknown",
    "PlannerContext",
    "Problem",
    "QueryChanged",
    "QueryKeyInvalid",
    "QueryReader",
    "Reader",
    "Rejection",
    "RequestNotFound",
    "RequestNotWaiting",
    "RequestStatus",
    "RestartNeedsNewAttempt",
    "RunUnknown",
    "Runtime",
    "RuntimeLeft",
    "RuntimeOptions",
    "SchemaMissing",
    "SchemaTooNew",
    "ServedRequest",
    "ShutdownReport",
    "ShuttingDown",
    "SizedReader",
    "Split",
    "SplitObservation",
    "StaleVersion",
    "StartLimitReached",
    "Step",
    "StepContext",
    "StepListener",
    "StepNameMismatch",
    "StepNotReported",
    "StepOutcome",
    "StepReport",
    "StepUnknown",
    "Stop",
    "StoreError",
    "StoreGone",
    "StoreLocked",
    "StoreUnavailable",
    "StoreUnusable",
    "TableError",
    "TableMismatch",
    "TableMissing",
    "TableRowRefused",
    "TableWriter",
    "TaskletJob",
    "TrioletError",
    "UndeclaredCapability",
    "Unresolved",
    "UpgradeConflict",
    "Upgraded",
    "Withdrawal",
    "WriteFailed",
    "Writer",
    "WrongNodeKind",
    "assemble",
    "asyncio_tasklet",
    "compile_job",
    "enqueue",
    "open_runtime",
]

if not TYPE_CHECKING:
    __getattr__, __dir__ = lazy_face(__name__, HOMES, __all__)
