"""The exit codes: one table from what happened to the number that scripts see."""

from ...storage.model.status import BatchStatus

DONE = 0
USAGE = 1
DEFINITION = 2
REFUSED = 3
NOT_FOUND = 4
CONFLICT = 5
UNKNOWN = 6
STORE = 7
OUTPUT_FAILED = 10
JOB_FAILED = 11
JOB_STOPPED = 12
INTERNAL = 70
SECOND_SIGNAL = 130

BY_STATUS = {
    BatchStatus.COMPLETED: DONE,
    BatchStatus.FAILED: JOB_FAILED,
    BatchStatus.STOPPED: JOB_STOPPED,
    BatchStatus.UNKNOWN: UNKNOWN,
}

BY_ERROR = {
    "definition_invalid": DEFINITION,
    "name_invalid": REFUSED,
    "parameter_invalid": REFUSED,
    "value_invalid": DEFINITION,
    "target_invalid": DEFINITION,
    "instance_complete": REFUSED,
    "instance_abandoned": REFUSED,
    "definition_incompatible": REFUSED,
    "definition_drift": REFUSED,
    "execution_not_found": NOT_FOUND,
    "already_running": CONFLICT,
    "lease_lost": CONFLICT,
    "stale_version": CONFLICT,
    "owner_unknown": CONFLICT,
    "outcome_unresolved": UNKNOWN,
    "commit_outcome_unknown": UNKNOWN,
    "store_error": STORE,
    "store_unavailable": STORE,
    "store_locked": STORE,
    "store_unusable": STORE,
    "store_gone": STORE,
    "schema_missing": STORE,
    "schema_too_new": STORE,
    "record_corrupt": STORE,
    "unsupported": DEFINITION,
}
"""By the stable ``code`` of an error; any other error is an internal one."""
