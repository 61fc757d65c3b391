CREATE TABLE triolet_owner (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    facts TEXT NOT NULL,
    registered_at INTEGER NOT NULL,
    lease_until INTEGER NOT NULL
) STRICT;

CREATE TABLE triolet_definition (
    id INTEGER PRIMARY KEY,
    job TEXT NOT NULL,
    revision TEXT NOT NULL,
    format INTEGER NOT NULL,
    fingerprint BLOB NOT NULL CHECK (length(fingerprint) = 32),
    manifest TEXT NOT NULL,
    registered_at INTEGER NOT NULL,
    UNIQUE (job, fingerprint),
    UNIQUE (job, revision)
) STRICT;

CREATE TABLE triolet_instance (
    id INTEGER PRIMARY KEY,
    job TEXT NOT NULL,
    instance_key BLOB NOT NULL CHECK (length(instance_key) = 32),
    parameters TEXT NOT NULL,
    run INTEGER,
    created_at INTEGER NOT NULL,
    UNIQUE (job, instance_key)
) STRICT;

CREATE INDEX triolet_instance_run ON triolet_instance (job, run) WHERE run IS NOT NULL;

CREATE TABLE triolet_execution (
    id INTEGER PRIMARY KEY,
    instance_id INTEGER NOT NULL REFERENCES triolet_instance (id),
    definition_id INTEGER NOT NULL REFERENCES triolet_definition (id),
    owner_id INTEGER NOT NULL REFERENCES triolet_owner (id),
    attempt INTEGER NOT NULL CHECK (attempt > 0),
    restart_of INTEGER REFERENCES triolet_execution (id),
    status TEXT NOT NULL,
    exit_code TEXT NOT NULL DEFAULT 'UNKNOWN',
    read_count INTEGER NOT NULL DEFAULT 0,
    process_count INTEGER NOT NULL DEFAULT 0,
    write_count INTEGER NOT NULL DEFAULT 0,
    filter_count INTEGER NOT NULL DEFAULT 0,
    commit_count INTEGER NOT NULL DEFAULT 0,
    rollback_count INTEGER NOT NULL DEFAULT 0,
    failure TEXT,
    parameters TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    started_at INTEGER,
    ended_at INTEGER,
    version INTEGER NOT NULL CHECK (version >= 0),
    UNIQUE (instance_id, attempt),
    CHECK ((ended_at IS NULL) = (status IN ('STARTING', 'STARTED', 'STOPPING', 'UNKNOWN')))
) STRICT;

-- One unresolved attempt per instance, whatever happens above.
CREATE UNIQUE INDEX triolet_execution_unresolved ON triolet_execution (instance_id)
WHERE status IN ('STARTING', 'STARTED', 'STOPPING', 'UNKNOWN');

CREATE TABLE triolet_step (
    id INTEGER PRIMARY KEY,
    execution_id INTEGER NOT NULL REFERENCES triolet_execution (id),
    node TEXT NOT NULL,
    visit INTEGER NOT NULL,
    name TEXT NOT NULL,
    status TEXT NOT NULL,
    exit_code TEXT NOT NULL DEFAULT 'UNKNOWN',
    read_count INTEGER NOT NULL DEFAULT 0,
    process_count INTEGER NOT NULL DEFAULT 0,
    write_count INTEGER NOT NULL DEFAULT 0,
    filter_count INTEGER NOT NULL DEFAULT 0,
    commit_count INTEGER NOT NULL DEFAULT 0,
    rollback_count INTEGER NOT NULL DEFAULT 0,
    checkpoint TEXT,
    context TEXT,
    failure TEXT,
    created_at INTEGER NOT NULL,
    started_at INTEGER,
    ended_at INTEGER,
    version INTEGER NOT NULL CHECK (version >= 0),
    decision_sequence INTEGER,
    decision_target TEXT,
    UNIQUE (execution_id, node, visit)
) STRICT;

CREATE TABLE triolet_decision (
    execution_id INTEGER NOT NULL REFERENCES triolet_execution (id),
    sequence INTEGER NOT NULL CHECK (sequence > 0),
    source TEXT NOT NULL,
    visit INTEGER NOT NULL,
    step_id INTEGER REFERENCES triolet_step (id),
    kind TEXT NOT NULL,
    outcome TEXT NOT NULL,
    target TEXT NOT NULL,
    digest BLOB NOT NULL CHECK (length(digest) = 32),
    reused_execution INTEGER,
    reused_sequence INTEGER,
    decided_at INTEGER NOT NULL,
    PRIMARY KEY (execution_id, sequence)
) STRICT, WITHOUT ROWID;

CREATE TABLE triolet_commit_marker (
    writer BLOB PRIMARY KEY,
    batch_id BLOB NOT NULL,
    committed_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
