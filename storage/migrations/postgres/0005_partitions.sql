CREATE TABLE triolet.partition (
    manager_id bigint NOT NULL,
    ordinal bigint NOT NULL CHECK (ordinal > 0),
    partition_key text COLLATE "C" NOT NULL,
    context text COLLATE "C" NOT NULL,
    status text COLLATE "C" NOT NULL,
    exit_code text COLLATE "C" NOT NULL,
    read_count bigint NOT NULL DEFAULT 0,
    process_count bigint NOT NULL DEFAULT 0,
    write_count bigint NOT NULL DEFAULT 0,
    filter_count bigint NOT NULL DEFAULT 0,
    commit_count bigint NOT NULL DEFAULT 0,
    rollback_count bigint NOT NULL DEFAULT 0,
    worker_id bigint,
    version bigint NOT NULL DEFAULT 0,
    PRIMARY KEY (manager_id, ordinal),
    UNIQUE (manager_id, partition_key)
) WITH (fillfactor = 50);
