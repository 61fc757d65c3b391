CREATE TABLE triolet_launch_request (
    id INTEGER PRIMARY KEY,
    job TEXT NOT NULL,
    parameters TEXT NOT NULL,
    anew INTEGER NOT NULL CHECK (anew IN (0, 1)),
    instance_key BLOB,
    status TEXT NOT NULL DEFAULT 'REQUESTED',
    requested_at INTEGER NOT NULL,
    owner_id INTEGER,
    claimed_at INTEGER,
    execution_id INTEGER REFERENCES triolet_execution (id),
    ended_at INTEGER,
    refusal TEXT,
    withdrawn_by TEXT,
    withdrawn_why TEXT,
    CHECK (status IN ('REQUESTED', 'CLAIMED', 'DONE', 'REFUSED', 'WITHDRAWN')),
    CHECK ((status IN ('REQUESTED', 'WITHDRAWN')) = (owner_id IS NULL)),
    CHECK ((status IN ('DONE', 'REFUSED', 'WITHDRAWN')) = (ended_at IS NOT NULL)),
    CHECK ((status = 'REFUSED') = (refusal IS NOT NULL)),
    CHECK ((status = 'WITHDRAWN') = (withdrawn_by IS NOT NULL)),
    CHECK ((anew = 1) = (instance_key IS NULL))
) STRICT;

CREATE INDEX triolet_launch_request_open ON triolet_launch_request (job, id)
WHERE status IN ('REQUESTED', 'CLAIMED');

CREATE INDEX triolet_launch_request_turn ON triolet_launch_request (instance_key, id)
WHERE status IN ('REQUESTED', 'CLAIMED')
