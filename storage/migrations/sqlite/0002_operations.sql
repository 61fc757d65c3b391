CREATE TABLE triolet_stop_request (
    execution_id INTEGER PRIMARY KEY REFERENCES triolet_execution (id),
    owner_id INTEGER NOT NULL,
    actor TEXT NOT NULL,
    reason TEXT,
    requested_at INTEGER NOT NULL
) STRICT;

CREATE INDEX triolet_stop_request_owner ON triolet_stop_request (owner_id);

CREATE TABLE triolet_recovery_decision (
    execution_id INTEGER NOT NULL REFERENCES triolet_execution (id),
    version INTEGER NOT NULL,
    prior_status TEXT NOT NULL,
    result_status TEXT NOT NULL,
    actor TEXT NOT NULL,
    reason TEXT,
    evidence BLOB NOT NULL CHECK (length(evidence) = 32),
    decided_at INTEGER NOT NULL,
    PRIMARY KEY (execution_id, version)
) STRICT;

CREATE TABLE triolet_operator_request (
    id INTEGER PRIMARY KEY,
    action TEXT NOT NULL,
    operation_id TEXT NOT NULL,
    execution_id INTEGER NOT NULL,
    actor TEXT NOT NULL,
    reason TEXT,
    digest BLOB NOT NULL CHECK (length(digest) = 32),
    observed_version INTEGER,
    prior_status TEXT,
    result_status TEXT,
    outcome TEXT NOT NULL,
    refusal TEXT,
    requested_at INTEGER NOT NULL,
    UNIQUE (operation_id),
    CHECK (outcome IN ('APPLIED', 'REJECTED')),
    CHECK ((outcome = 'REJECTED') = (refusal IS NOT NULL))
) STRICT;

CREATE INDEX triolet_operator_request_execution
ON triolet_operator_request (execution_id, id);
