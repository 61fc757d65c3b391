"""The transition matrix once more, from the specification, apart from the code.

Rows are where something stands, columns what it may become; R says that a restart is
a new attempt instead.
"""

from triolet.storage.model.errors import TrioletError
from triolet.storage.model.status import (
    BatchStatus,
    IllegalTransition,
    RestartNeedsNewAttempt,
)

S = BatchStatus
# fmt: off
ORDER = (
    S.STARTING, S.STARTED, S.STOPPING, S.STOPPED,
    S.FAILED, S.COMPLETED, S.ABANDONED, S.UNKNOWN,
)
MATRIX = {
    S.STARTING:  ". + + . + . . +",
    S.STARTED:   ". . + + + + . +",
    S.STOPPING:  ". . . + + . . +",
    S.STOPPED:   "R . . . . . + .",
    S.FAILED:    "R . . . . . + .",
    S.COMPLETED: ". . . . . . . .",
    S.ABANDONED: ". . . . . . . .",
    S.UNKNOWN:   ". . . . + . + .",
}
# fmt: on


def verdict(found: BatchStatus, wanted: BatchStatus) -> TrioletError | None:
    """Say what the matrix says to a transition; None is yes."""
    match MATRIX[found].split()[ORDER.index(wanted)]:
        case "+":
            return None
        case "R":
            return RestartNeedsNewAttempt(found)
        case _:
            return IllegalTransition(found, wanted)
