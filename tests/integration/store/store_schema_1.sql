BEGIN TRANSACTION;
CREATE TABLE answers (
        id INTEGER PRIMARY KEY, key TEXT NOT NULL UNIQUE, identity BIGINT NOT NULL REFERENCES identities (id), kind TEXT NOT NULL,
        question TEXT NOT NULL, answer TEXT NOT NULL, cost BIGINT NOT NULL, answered_at DOUBLE PRECISION NOT NULL);
INSERT INTO "answers" VALUES(1,'a',1,'label','{"asked":"a"}','{"verdict":"yes"}',100000,1700000000.0);
INSERT INTO "answers" VALUES(2,'b',1,'label','{"asked":"b"}','{"verdict":"yes"}',100000,1700000000.0);
CREATE TABLE charges (
        key TEXT NOT NULL, fence BIGINT NOT NULL, run BIGINT NOT NULL REFERENCES runs (id),
        oracle TEXT NOT NULL, kind TEXT NOT NULL,
        state TEXT NOT NULL CHECK (state IN ('claimed', 'sent', 'paid', 'unknown', 'released')),
        owner TEXT NOT NULL, token TEXT NOT NULL,
        lease_seconds DOUBLE PRECISION NOT NULL, lease_until DOUBLE PRECISION NOT NULL,
        reserved BIGINT NOT NULL CHECK (reserved >= 0), cost BIGINT NOT NULL CHECK (cost >= 0),
        requests BIGINT NOT NULL, input_tokens BIGINT NOT NULL, output_tokens BIGINT NOT NULL,
        seconds DOUBLE PRECISION NOT NULL, claimed_at DOUBLE PRECISION NOT NULL, settled_at DOUBLE PRECISION,
        PRIMARY KEY (key, fence)) WITHOUT ROWID;
INSERT INTO "charges" VALUES('a',1,1,'crowd','label','paid','owner of run-1','89b85dda1f3041f89f98dffc8ab1ea2b',60.0,1700000060.0,100000,100000,1,20,3,0.5,1700000000.0,1700000000.0);
INSERT INTO "charges" VALUES('b',1,1,'crowd','label','paid','owner of run-1','89b85dda1f3041f89f98dffc8ab1ea2b',60.0,1700000060.0,100000,100000,1,20,3,0.5,1700000000.0,1700000000.0);
INSERT INTO "charges" VALUES('c',1,1,'crowd','label','unknown','owner-1','80b6a575a16f4f37ace36abe811f7504',60.0,1700000060.0,100000,0,0,0,0,0.0,1700000000.0,1700000000.0);
CREATE TABLE identities (
        id INTEGER PRIMARY KEY, digest TEXT NOT NULL UNIQUE, oracle TEXT NOT NULL, identity TEXT NOT NULL);
INSERT INTO "identities" VALUES(1,'1b2f8e4bb593a2c0877a56db374b93edcbd61954fff2576d2f471cf77a1e8900','crowd','{"kind":"crowd","model":"m"}');
CREATE TABLE runs (
        id INTEGER PRIMARY KEY, run_id TEXT NOT NULL UNIQUE, scope BIGINT NOT NULL REFERENCES scopes (id),
        name TEXT NOT NULL, flow TEXT NOT NULL, dataset TEXT NOT NULL, oracle TEXT NOT NULL, settings TEXT NOT NULL,
        status TEXT NOT NULL, summary TEXT, started_at DOUBLE PRECISION NOT NULL, ended_at DOUBLE PRECISION);
INSERT INTO "runs" VALUES(1,'run-1',1,'a run','discover','faces','crowd','{"seed":1}','failed','{}',1700000000.0,1700000000.0);
INSERT INTO "runs" VALUES(2,'run-2',1,'a run','discover','faces','crowd','{"seed":1}','done','{"features":2}',1700000000.0,1700000000.0);
CREATE TABLE scopes (
        id INTEGER PRIMARY KEY, scope TEXT NOT NULL UNIQUE,
        spent BIGINT NOT NULL CHECK (spent >= 0), reserved BIGINT NOT NULL CHECK (reserved >= 0));
INSERT INTO "scopes" VALUES(1,'the same run',300000,0);
CREATE TABLE twothirds_schema (version BIGINT PRIMARY KEY);
INSERT INTO "twothirds_schema" VALUES(1);
CREATE TABLE uses (
        run BIGINT NOT NULL REFERENCES runs (id), answer BIGINT NOT NULL REFERENCES answers (id),
        PRIMARY KEY (run, answer)) WITHOUT ROWID;
INSERT INTO "uses" VALUES(2,1);
CREATE INDEX runs_by_scope ON runs (scope);
CREATE UNIQUE INDEX one_live_claim_per_key ON charges (key) WHERE state IN ('claimed', 'sent');
CREATE INDEX live_claims_by_lease ON charges (lease_until) WHERE state IN ('claimed', 'sent');
CREATE INDEX charges_by_run ON charges (run);
COMMIT;
