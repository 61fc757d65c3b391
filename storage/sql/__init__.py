"""The commands in SQL, as far as the SQL stores agree."""

from collections.abc import Callable
from typing import Any

from ..backend import Waits
from ..commands import (
    Abandon,
    Advance,
    BeginStopping,
    CommitChunk,
    Diagnose,
    Enlist,
    FindStops,
    LatestExecution,
    ListExecutions,
    ListOperations,
    OpenExecution,
    Recover,
    RegisterOwner,
    ReleaseOwner,
    RenewLease,
    RequestStop,
    ShowExecution,
)
from ..commands.previewing import PreviewOpening
from ..commands.requesting import (
    ClaimLaunches,
    EndLaunch,
    FindLaunches,
    ListLaunches,
    RequestLaunch,
    WithdrawLaunch,
)
from ..commands.upgrading import FindDefinition, RegisterUpgrade
from . import (
    advancing,
    chunks,
    diagnosing,
    opening,
    operating,
    ownership,
    previewing,
    questions,
    requesting,
    upgrading,
)
from .session import Session

HANDLERS: dict[type, Callable[[Session, Any, int], Waits[object]]] = {
    RegisterOwner: ownership.register,
    RenewLease: ownership.renew,
    ReleaseOwner: ownership.release,
    OpenExecution: opening.open_execution,
    Advance: advancing.advance,
    CommitChunk: chunks.commit_chunk,
    Enlist: chunks.enlist,
    ListExecutions: questions.list_executions,
    LatestExecution: questions.latest_execution,
    ShowExecution: questions.show_execution,
    RequestStop: operating.operate,
    Abandon: operating.operate,
    Recover: operating.operate,
    BeginStopping: operating.begin_stopping,
    FindStops: diagnosing.find_stops,
    ListOperations: diagnosing.list_operations,
    Diagnose: diagnosing.diagnose,
    RegisterUpgrade: upgrading.register_upgrade,
    FindDefinition: upgrading.find_definition,
    PreviewOpening: previewing.preview_opening,
    RequestLaunch: requesting.request_launch,
    FindLaunches: requesting.find_launches,
    ClaimLaunches: requesting.claim_launches,
    EndLaunch: requesting.end_launch,
    WithdrawLaunch: requesting.withdraw_launch,
    ListLaunches: requesting.list_launches,
}
"""What carries each command out: called with the session, the command and the time."""
