"""The durable half of Triolet: how a store is opened, and what it may refuse.

Jobs are described and run with ``triolet.actors``; this half knows nothing of trio. A
name is imported when it is first used, so that importing the face costs nothing.
"""

from .faces import lazy_face

# As in typing, whose import costs more than all the rest.
TYPE_CHECKING = False

if TYPE_CHECKING:
    from .backend import Backend as Backend
    from .commands import ActionNotAllowed as ActionNotAllowed
    from .commands import AlreadyRunning as AlreadyRunning
    from .commands import DefinitionDrift as DefinitionDrift
    from .commands import DefinitionUnknown as DefinitionUnknown
    from .commands import DuplicateStep as DuplicateStep
    from .commands import EvidenceChanged as EvidenceChanged
    from .commands import ExecutionNotFound as ExecutionNotFound
    from .commands import IncompatibleDefinition as IncompatibleDefinition
    from .commands import InstanceAbandoned as InstanceAbandoned
    from .commands import InstanceComplete as InstanceComplete
    from .commands import LeaseLost as LeaseLost
    from .commands import NotLatestAttempt as NotLatestAttempt
    from .commands import NotRestartable as NotRestartable
    from .commands import OperationIdConflict as OperationIdConflict
    from .commands import OutcomeUnresolved as OutcomeUnresolved
    from .commands import OwnerUnknown as OwnerUnknown
    from .commands import PartitionStale as PartitionStale
    from .commands import PlanUnknown as PlanUnknown
    from .commands import RunUnknown as RunUnknown
    from .commands import StaleVersion as StaleVersion
    from .commands import StartLimitReached as StartLimitReached
    from .commands import StepUnknown as StepUnknown
    from .commands import UpgradeConflict as UpgradeConflict
    from .commands import WriteFailed as WriteFailed
    from .commands.requesting import LaunchLost as LaunchLost
    from .commands.requesting import RequestNotFound as RequestNotFound
    from .commands.requesting import RequestNotWaiting as RequestNotWaiting
    from .model.errors import CommitOutcomeUnknown as CommitOutcomeUnknown
    from .model.errors import CorruptRecord as CorruptRecord
    from .model.errors import DefinitionError as DefinitionError
    from .model.errors import DriverMissing as DriverMissing
    from .model.errors import InsufficientPoolCapacity as InsufficientPoolCapacity
    from .model.errors import InternalError as InternalError
    from .model.errors import InvalidName as InvalidName
    from .model.errors import InvalidParameter as InvalidParameter
    from .model.errors import InvalidValue as InvalidValue
    from .model.errors import Problem as Problem
    from .model.errors import Rejection as Rejection
    from .model.errors import SchemaMissing as SchemaMissing
    from .model.errors import SchemaTooNew as SchemaTooNew
    from .model.errors import StoreError as StoreError
    from .model.errors import StoreGone as StoreGone
    from .model.errors import StoreLocked as StoreLocked
    from .model.errors import StoreUnavailable as StoreUnavailable
    from .model.errors import StoreUnusable as StoreUnusable
    from .model.errors import TrioletError as TrioletError
    from .model.errors import UndeclaredCapability as UndeclaredCapability
    from .model.status import IllegalTransition as IllegalTransition
    from .model.status import RestartNeedsNewAttempt as RestartNeedsNewAttempt
    from .stores import StoreOptions as StoreOptions
    from .stores import open_store as open_store

_HOMES = (
    ".model.errors",
    ".model.status",
    ".commands",
    ".commands.requesting",
    ".backend",
    ".stores",
)
"""Where the names live, quick ones first; the first that has a name wins."""

__all__ = [
    "ActionNotAllowed",
    "AlreadyRunning",
    "Backend",
    "CommitOutcomeUnknown",
    "CorruptRecord",
    "DefinitionDrift",
    "DefinitionError",
    "DefinitionUnknown",
    "DriverMissing",
    "DuplicateStep",
    "EvidenceChanged",
    "ExecutionNotFound",
    "IllegalTransition",
    "IncompatibleDefinition",
    "InstanceAbandoned",
    "InstanceComplete",
    "InsufficientPoolCapacity",
    "InternalError",
    "InvalidName",
    "InvalidParameter",
    "InvalidValue",
    "LaunchLost",
    "LeaseLost",
    "NotLatestAttempt",
    "NotRestartable",
    "OperationIdConflict",
    "OutcomeUnresolved",
    "OwnerUnknown",
    "PartitionStale",
    "PlanUnknown",
    "Problem",
    "Rejection",
    "RequestNotFound",
    "RequestNotWaiting",
    "RestartNeedsNewAttempt",
    "RunUnknown",
    "SchemaMissing",
    "SchemaTooNew",
    "StaleVersion",
    "StartLimitReached",
    "StepUnknown",
    "StoreError",
    "StoreGone",
    "StoreLocked",
    "StoreOptions",
    "StoreUnavailable",
    "StoreUnusable",
    "TrioletError",
    "UndeclaredCapability",
    "UpgradeConflict",
    "WriteFailed",
    "open_store",
]

if not TYPE_CHECKING:
    __getattr__, __dir__ = lazy_face(__name__, _HOMES, __all__)
