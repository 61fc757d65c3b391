"""The exit codes: one table from what happened to the number that scripts see.

An error is looked up by its stable ``code``, then by those of the classes that it
derives from.
"""

from ...storage.model.status import BatchStatus
from .interrupts import INTERRUPTED

DONE = 0
USAGE = 1
DEFINITION = 2
REFUSED = 3
NOT_FOUND = 4
CONFLICT = 5
UNKNOWN = 6
STORE = 7
UNCONFIRMED = 8
DEADLINE = 9
OUTPUT_FAILED = 10
JOB_FAILED = 11
JOB_STOPPED = 12
INTERNAL = 70
SECOND_SIGNAL = INTERRUPTED

BY_STATUS = {
    BatchStatus.COMPLETED: DONE,
    BatchStatus.FAILED: JOB_FAILED,
    BatchStatus.STOPPED: JOB_STOPPED,
    BatchStatus.UNKNOWN: UNKNOWN,
}

BY_ERROR = {
    "definition_invalid": DEFINITION,
    "target_invalid": DEFINITION,
    "value_invalid": DEFINITION,
    "driver_missing": DEFINITION,
    "job_not_made": DEFINITION,
    "assembly_invalid": DEFINITION,
    "undeclared_capability": DEFINITION,
    "insufficient_pool_capacity": DEFINITION,
    "name_invalid": REFUSED,
    "parameter_invalid": REFUSED,
    "instance_complete": REFUSED,
    "instance_abandoned": REFUSED,
    "not_restartable": REFUSED,
    "definition_incompatible": REFUSED,
    "definition_drift": REFUSED,
    "other_instance": REFUSED,
    "child_execution": REFUSED,
    "action_not_allowed": REFUSED,
    "not_latest_attempt": REFUSED,
    "request_not_waiting": REFUSED,
    "execution_not_found": NOT_FOUND,
    "run_unknown": NOT_FOUND,
    "definition_unknown": NOT_FOUND,
    "request_not_found": NOT_FOUND,
    "rejected": CONFLICT,
    "components_in_use": CONFLICT,
    "outcome_unresolved": UNKNOWN,
    "commit_outcome_unknown": UNKNOWN,
    "store_error": STORE,
    "usage_invalid": USAGE,
    "confirmation_missing": UNCONFIRMED,
    "owner_gone": DEADLINE,
    "output_failed": OUTPUT_FAILED,
}
"""By the ``code`` of an error class; what derives from none of these is internal."""


def exit_of(error: Exception) -> int:
    """Find the exit code for an error that ended a command."""
    for kind in type(error).__mro__:
        code = BY_ERROR.get(str(vars(kind).get("code")))
        if code is not None:
            return code
    return INTERNAL
