"""The commands in SQL, as far as the SQL stores agree."""

from collections.abc import Callable
from typing import Any

from ..backend import Waits
from ..commands import (
    Advance,
    CommitChunk,
    Enlist,
    ListExecutions,
    OpenExecution,
    RegisterOwner,
    ReleaseOwner,
    RenewLease,
    ShowExecution,
)
from ..commands.upgrading import FindDefinition, RegisterUpgrade
from . import advancing, opening, ownership, questions, upgrading
from .session import Session

HANDLERS: dict[type, Callable[[Session, Any, int], Waits[object]]] = {
    RegisterOwner: ownership.register,
    RenewLease: ownership.renew,
    ReleaseOwner: ownership.release,
    OpenExecution: opening.open_execution,
    Advance: advancing.advance,
    CommitChunk: advancing.commit_chunk,
    Enlist: advancing.enlist,
    ListExecutions: questions.list_executions,
    ShowExecution: questions.show_execution,
    RegisterUpgrade: upgrading.register_upgrade,
    FindDefinition: upgrading.find_definition,
}
"""What carries each command out: called with the session, the command and the time."""
