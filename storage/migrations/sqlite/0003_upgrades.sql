CREATE TABLE triolet_upgrade (
    source_id INTEGER NOT NULL REFERENCES triolet_definition (id),
    target_id INTEGER NOT NULL REFERENCES triolet_definition (id),
    upgrade_key TEXT NOT NULL,
    steps TEXT NOT NULL,
    registered_at INTEGER NOT NULL,
    PRIMARY KEY (source_id, target_id),
    UNIQUE (target_id, upgrade_key),
    CHECK (source_id <> target_id)
) STRICT, WITHOUT ROWID;
