CREATE TABLE triolet.upgrade (
    source_id bigint NOT NULL REFERENCES triolet.definition (id),
    target_id bigint NOT NULL REFERENCES triolet.definition (id),
    upgrade_key text COLLATE "C" NOT NULL,
    steps text COLLATE "C" NOT NULL,
    registered_at bigint NOT NULL,
    PRIMARY KEY (source_id, target_id),
    UNIQUE (target_id, upgrade_key),
    CHECK (source_id <> target_id)
);
