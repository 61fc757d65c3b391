BEGIN TRANSACTION;
CREATE TABLE triolet_commit_marker (
    writer BLOB PRIMARY KEY,
    batch_id BLOB NOT NULL,
    committed_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
INSERT INTO "triolet_commit_marker" VALUES(X'67676767676767676767676767676767',X'0000000000000000000000000000000C',1764590400000000);
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
INSERT INTO "triolet_definition" VALUES(1,'settlement','1',2,X'6666666666666666666666666666666666666666666666666666666666666666','{"mark":"f"}',1764590400000000);
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
INSERT INTO "triolet_execution" VALUES(1,1,1,1,1,NULL,'STARTED','UNKNOWN',0,0,0,0,0,0,NULL,'{"day":{"identifying":true,"type":"STRING","value":"2026-11-30"}}',1764590400000000,1764590400000000,NULL,1);
INSERT INTO "triolet_execution" VALUES(2,2,1,1,1,NULL,'FAILED','FAILED',0,0,0,0,0,0,'{"category":"STALE_RECOVERED","code":"recovered","id":6490737972195206428}','{"day":{"identifying":true,"type":"STRING","value":"2026-11-30"},"triolet.run":{"identifying":true,"type":"I64","value":1}}',1764590400000000,1764590400000000,1764590400000000,5);
INSERT INTO "triolet_execution" VALUES(3,3,1,1,1,NULL,'ABANDONED','FAILED',0,0,0,0,0,0,'{"category":"USER_COMPONENT","id":77,"type":"ValueError","where":"load"}','{"day":{"identifying":true,"type":"STRING","value":"2026-11-30"},"triolet.run":{"identifying":true,"type":"I64","value":2}}',1764590400000000,1764590400000000,1764590400000000,4);
CREATE TABLE triolet_instance (
    id INTEGER PRIMARY KEY,
    job TEXT NOT NULL,
    instance_key BLOB NOT NULL CHECK (length(instance_key) = 32),
    parameters TEXT NOT NULL,
    run INTEGER,
    created_at INTEGER NOT NULL,
    UNIQUE (job, instance_key)
) STRICT;
INSERT INTO "triolet_instance" VALUES(1,'settlement',X'B48488E6A269E2394134DF70850FD2AFF37FB833917B704BFD89C2E5DAB0D702','{"day":{"identifying":true,"type":"STRING","value":"2026-11-30"}}',NULL,1764590400000000);
INSERT INTO "triolet_instance" VALUES(2,'settlement',X'6BA557BA4280425A41E2093BBB6A7DC92908CC72AAA7269C77944D860D870B9B','{"day":{"identifying":true,"type":"STRING","value":"2026-11-30"},"triolet.run":{"identifying":true,"type":"I64","value":1}}',1,1764590400000000);
INSERT INTO "triolet_instance" VALUES(3,'settlement',X'9E5C588C12A976053D583DAA056F98AC91512DC80CA36D7A5135075D8FFD4F9D','{"day":{"identifying":true,"type":"STRING","value":"2026-11-30"},"triolet.run":{"identifying":true,"type":"I64","value":2}}',2,1764590400000000);
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
    UNIQUE (action, operation_id),
    CHECK (outcome IN ('APPLIED', 'REJECTED')),
    CHECK ((outcome = 'REJECTED') = (refusal IS NOT NULL))
) STRICT;
INSERT INTO "triolet_operator_request" VALUES(1,'STOP','op-1',1,'eve','too slow',X'9896733A48116DFDEDBFD578BFCCF50007EEE3B7EB18648F0A8BF1EFD4339E96',1,'STARTED','STARTED','APPLIED',NULL,1764590400000000);
INSERT INTO "triolet_operator_request" VALUES(2,'RECOVER','op-1',1,'eve',NULL,X'2A2289536BCD21204A5AE42F2D2ED1FD33D29937BD5F3E7B7AB8B85096101B81',1,'STARTED','STARTED','REJECTED','{"code":"already_running","members":{"execution_id":1,"lease_left":30000000,"owner":{"boot_id":"b0","host":"alpha","pid":4711,"pid_namespace":"pid:[1]","process_start":"99"},"owner_id":1}}',1764590400000000);
INSERT INTO "triolet_operator_request" VALUES(3,'ABANDON','op-1',2,'eve',NULL,X'54DF0AC64E0FC0B415A280E39512428E361D6B083057CD8F4AB1C844C8105517',3,'UNKNOWN','UNKNOWN','REJECTED','{"code":"action_not_allowed","members":{"action":"ABANDON","execution_id":2,"status":"UNKNOWN"}}',1764590400000000);
INSERT INTO "triolet_operator_request" VALUES(4,'RECOVER','op-2',2,'eve','the bank has booked it',X'B4277797B5AB4A38B270ABF4DF375273D0B3A612C6DEA91C52777A013D372EB5',3,'UNKNOWN','FAILED','APPLIED',NULL,1764590400000000);
INSERT INTO "triolet_operator_request" VALUES(5,'ABANDON','op-2',3,'eve',NULL,X'1897A29614BB2443421FB7A0665DB14BF46AADAE3EDB21632F5A6C739075103C',3,'FAILED','FAILED','REJECTED','{"code":"stale_version","members":{"actual":3,"expected":9}}',1764590400000000);
INSERT INTO "triolet_operator_request" VALUES(6,'ABANDON','op-3',3,'eve',NULL,X'45F5877F29F444BB3644CBB6D144D45ED4AFF3602AC2BE450F47E9B312E77A4F',3,'FAILED','ABANDONED','APPLIED',NULL,1764590400000000);
CREATE TABLE triolet_owner (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    facts TEXT NOT NULL,
    registered_at INTEGER NOT NULL,
    lease_until INTEGER NOT NULL
) STRICT;
INSERT INTO "triolet_owner" VALUES(1,'{"boot_id":"b0","host":"alpha","pid":4711,"pid_namespace":"pid:[1]","process_start":"99"}',1764590400000000,1764590430000000);
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
INSERT INTO "triolet_recovery_decision" VALUES(2,3,'UNKNOWN','FAILED','eve','the bank has booked it',X'E95B0082CD414256AAE46B025EC46133E39B389979FFAB1E74BCCBEE7E60E532',1764590400000000);
CREATE TABLE triolet_schema (version INTEGER PRIMARY KEY, applied_at INTEGER NOT NULL) STRICT;
INSERT INTO "triolet_schema" VALUES(1,1764590400000000);
INSERT INTO "triolet_schema" VALUES(2,1764590400000000);
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
INSERT INTO "triolet_step" VALUES(1,1,'load',1,'load it','STARTED','UNKNOWN',0,0,0,0,0,0,NULL,NULL,NULL,1764590400000000,1764590400000000,NULL,1,NULL,NULL);
INSERT INTO "triolet_step" VALUES(2,2,'load',1,'load it','FAILED','FAILED',0,0,0,0,0,0,NULL,NULL,'{"category":"USER_COMPONENT","id":77,"type":"ValueError","where":"load"}',1764590400000000,1764590400000000,1764590400000000,5,NULL,NULL);
CREATE TABLE triolet_stop_request (
    execution_id INTEGER PRIMARY KEY REFERENCES triolet_execution (id),
    owner_id INTEGER NOT NULL,
    actor TEXT NOT NULL,
    reason TEXT,
    requested_at INTEGER NOT NULL
) STRICT;
INSERT INTO "triolet_stop_request" VALUES(1,1,'eve','too slow',1764590400000000);
CREATE INDEX triolet_instance_run ON triolet_instance (job, run) WHERE run IS NOT NULL;
CREATE UNIQUE INDEX triolet_execution_unresolved ON triolet_execution (instance_id)
WHERE status IN ('STARTING', 'STARTED', 'STOPPING', 'UNKNOWN');
CREATE INDEX triolet_stop_request_owner ON triolet_stop_request (owner_id);
CREATE INDEX triolet_operator_request_execution
ON triolet_operator_request (execution_id, id);
DELETE FROM "sqlite_sequence";
INSERT INTO "sqlite_sequence" VALUES('triolet_owner',1);
COMMIT;
