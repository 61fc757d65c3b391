BEGIN TRANSACTION;
CREATE TABLE numbers (n INTEGER);
INSERT INTO "numbers" VALUES(0);
INSERT INTO "numbers" VALUES(1);
INSERT INTO "numbers" VALUES(2);
CREATE TABLE triolet_commit_marker (
    writer BLOB PRIMARY KEY,
    batch_id BLOB NOT NULL,
    committed_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
INSERT INTO "triolet_commit_marker" VALUES(X'67676767676767676767676767676767',X'C381E88F38C0C8FD8712B8BC076F3787',1764590400013000);
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
INSERT INTO "triolet_decision" VALUES(1,2,'enough',1,NULL,'DECIDER','YES','node:report',X'6E8712F1E6F33793FD81368FD378175DC9E521EBB24E58F60A74D4C817EF713C',NULL,NULL,1764590400008000);
INSERT INTO "triolet_decision" VALUES(2,1,'load',1,1,'COMPLETED_STEP_REUSE','COMPLETED','node:enough',X'D13D0F2CE64C1D352A3414F9639CBA61C5102FA56A91367C93948B4B17AAD713',1,1,1764590400011000);
INSERT INTO "triolet_decision" VALUES(2,2,'enough',1,NULL,'DECIDER','YES','node:report',X'6E8712F1E6F33793FD81368FD378175DC9E521EBB24E58F60A74D4C817EF713C',1,2,1764590400011000);
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
INSERT INTO "triolet_definition" VALUES(1,'golden','dd22cbdbef82',2,X'DD22CBDBEF8275B3ED7CD97A9D624D53304AEAFF342EFAACD8DD68D8C5343A8B','{"entry":"load","format":2,"job":"golden","nodes":[{"decision":{"input_version":1,"revision":"1"},"id":"enough","kind":"decision"},{"id":"load","kind":"step","listeners":[],"policy":null,"start":{"allow_start_if_complete":false,"start_limit":4294967295},"step":{"declaration":{"checkpoint":{"schema":"triolet.position","version":1},"components":{"checkpoint":"1","processor":"1","reader":"1","writer":"1"},"context":{"schema":"triolet.state","version":1},"delivery_mode":"atomic_same_resource","size":2,"transaction_boundary":"chunk"},"kind":"chunk","name":"load"}},{"id":"report","kind":"step","listeners":[],"policy":null,"start":{"allow_start_if_complete":false,"start_limit":4294967295},"step":{"declaration":{"component":"1","delivery_mode":"best_effort","transaction_boundary":"tasklet_completion"},"kind":"tasklet","name":"report"}}],"transitions":[{"pattern":"YES","source":"enough","target":{"node":"report"}},{"pattern":"*","source":"enough","target":{"terminal":"stop"}},{"pattern":"FAILED","source":"load","target":{"terminal":"fail"}},{"pattern":"*","source":"load","target":{"node":"enough"}},{"pattern":"FAILED","source":"report","target":{"terminal":"fail"}},{"pattern":"*","source":"report","target":{"terminal":"complete"}}]}',1764590400003000);
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
INSERT INTO "triolet_execution" VALUES(1,1,1,1,1,NULL,'FAILED','FAILED',3,3,3,0,2,0,'{"category":"USER_COMPONENT","code":"tasklet_failed","id":5452427997905692977,"message":"printer on fire","type":"ValueError","where":"report"}','{"day":{"identifying":true,"type":"STRING","value":"2026-11-30"},"token":{"identifying":true,"secret":true,"type":"STRING"}}',1764590400003000,1764590400003000,1764590400009000,3);
INSERT INTO "triolet_execution" VALUES(2,1,1,1,2,1,'COMPLETED','COMPLETED',3,3,3,0,2,0,NULL,'{"day":{"identifying":true,"type":"STRING","value":"2026-11-30"},"token":{"identifying":true,"secret":true,"type":"STRING"}}',1764590400010000,1764590400010000,1764590400012000,3);
CREATE TABLE triolet_instance (
    id INTEGER PRIMARY KEY,
    job TEXT NOT NULL,
    instance_key BLOB NOT NULL CHECK (length(instance_key) = 32),
    parameters TEXT NOT NULL,
    run INTEGER,
    created_at INTEGER NOT NULL,
    UNIQUE (job, instance_key)
) STRICT;
INSERT INTO "triolet_instance" VALUES(1,'golden',X'A82842645F7D874BC0333C702298A0FE28FB827543B1E7D3FA36EC82CA3A490D','{"day":{"identifying":true,"type":"STRING","value":"2026-11-30"},"token":{"identifying":true,"secret":true,"type":"STRING"}}',NULL,1764590400003000);
CREATE TABLE triolet_owner (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    facts TEXT NOT NULL,
    registered_at INTEGER NOT NULL,
    lease_until INTEGER NOT NULL
) STRICT;
INSERT INTO "triolet_owner" VALUES(1,'{"boot_id":"b0","host":"alpha","pid":4711,"pid_namespace":"pid:[1]","process_start":"99"}',1764590400002000,0);
CREATE TABLE triolet_schema (version INTEGER PRIMARY KEY, applied_at INTEGER NOT NULL) STRICT;
INSERT INTO "triolet_schema" VALUES(1,1764590400001000);
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
INSERT INTO "triolet_step" VALUES(1,1,'load',1,'load','COMPLETED','COMPLETED',3,3,3,0,2,0,'{"format":"oxide-batch.checkpoint","format_version":1,"payload":{"n":3},"schema":"triolet.position","schema_version":1}',NULL,NULL,1764590400003000,1764590400003000,1764590400007000,5,1,'node:enough');
INSERT INTO "triolet_step" VALUES(2,1,'report',1,'report','FAILED','FAILED',0,0,0,0,0,0,NULL,NULL,'{"category":"USER_COMPONENT","code":"tasklet_failed","id":7395542922096466174,"message":"printer on fire","type":"ValueError","where":"report"}',1764590400008000,1764590400008000,1764590400009000,3,3,'terminal:fail');
INSERT INTO "triolet_step" VALUES(3,2,'report',1,'report','COMPLETED','COMPLETED',0,0,0,0,0,0,NULL,'{"format":"oxide-batch.execution-context","format_version":1,"payload":{"pages":2},"schema":"triolet.state","schema_version":1}',NULL,1764590400011000,1764590400011000,1764590400012000,3,3,'terminal:complete');
CREATE INDEX triolet_instance_run ON triolet_instance (job, run) WHERE run IS NOT NULL;
CREATE UNIQUE INDEX triolet_execution_unresolved ON triolet_execution (instance_id)
WHERE status IN ('STARTING', 'STARTED', 'STOPPING', 'UNKNOWN');
COMMIT;
