CREATE TABLE triolet_partition (
    manager_id INTEGER NOT NULL REFERENCES triolet_step (id),
    ordinal INTEGER NOT NULL CHECK (ordinal > 0),
    partition_key TEXT NOT NULL,
    context TEXT NOT NULL,
    status TEXT NOT NULL,
    exit_code TEXT NOT NULL,
    read_count INTEGER NOT NULL DEFAULT 0,
    process_count INTEGER NOT NULL DEFAULT 0,
    write_count INTEGER NOT NULL DEFAULT 0,
    filter_count INTEGER NOT NULL DEFAULT 0,
    commit_count INTEGER NOT NULL DEFAULT 0,
    rollback_count INTEGER NOT NULL DEFAULT 0,
    worker_id INTEGER REFERENCES triolet_step (id),
    version INTEGER NOT NULL DEFAULT 0,
    PRIMARY KEY (manager_id, ordinal),
    UNIQUE (manager_id, partition_key)
) STRICT, WITHOUT ROWID
