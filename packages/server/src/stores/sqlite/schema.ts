import { receiverSteps } from "./schema-receivers.js";

/** Each step brings a database from the version of its index to the next. A released step never changes. */
export const steps: readonly string[] = [
  `
CREATE TABLE counter (name TEXT PRIMARY KEY, value INTEGER NOT NULL) STRICT, WITHOUT ROWID;
INSERT INTO counter VALUES ('next_place', 1);

CREATE TABLE user (no INTEGER PRIMARY KEY AUTOINCREMENT, id TEXT NOT NULL UNIQUE, is_admin INTEGER NOT NULL, webhook_secret TEXT NOT NULL) STRICT;
CREATE TABLE api_key (
  no INTEGER PRIMARY KEY AUTOINCREMENT, hash TEXT NOT NULL UNIQUE, prefix TEXT NOT NULL, scope TEXT NOT NULL,
  owner_no INTEGER NOT NULL, is_bootstrap INTEGER NOT NULL, revoked_at INTEGER
) STRICT;
CREATE TABLE host (no INTEGER PRIMARY KEY AUTOINCREMENT, id TEXT NOT NULL UNIQUE, seen_at INTEGER NOT NULL) STRICT;

CREATE TABLE template (no INTEGER PRIMARY KEY AUTOINCREMENT, id TEXT NOT NULL UNIQUE, owner_no INTEGER NOT NULL, settings TEXT NOT NULL) STRICT;
CREATE TABLE volume (
  no INTEGER PRIMARY KEY AUTOINCREMENT, id TEXT NOT NULL UNIQUE, owner_no INTEGER NOT NULL,
  name TEXT NOT NULL, size INTEGER NOT NULL, data_center_id TEXT NOT NULL
) STRICT;
CREATE TABLE endpoint (
  no INTEGER PRIMARY KEY AUTOINCREMENT, id TEXT NOT NULL UNIQUE, owner_no INTEGER NOT NULL, settings TEXT NOT NULL,
  version INTEGER NOT NULL, created_at INTEGER NOT NULL, deleted_at INTEGER,
  failed_starts INTEGER NOT NULL DEFAULT 0, failed_at INTEGER, verdict TEXT
) STRICT;
CREATE TABLE worker (
  no INTEGER PRIMARY KEY AUTOINCREMENT, id TEXT NOT NULL UNIQUE, endpoint_no INTEGER NOT NULL, version INTEGER NOT NULL,
  host_no INTEGER NOT NULL, wanted TEXT NOT NULL CHECK (wanted IN ('running', 'closed', 'paused', 'stopped')),
  secret_hash TEXT, handle TEXT, worker_url TEXT, created_at INTEGER NOT NULL, started_at INTEGER, ready_at INTEGER,
  closed_at INTEGER, stop_at INTEGER, kill_at INTEGER, ended_at INTEGER, last_done_at INTEGER,
  has_pinged INTEGER NOT NULL DEFAULT 0, exit TEXT
) STRICT;
CREATE INDEX worker_endpoint ON worker (endpoint_no) WHERE ended_at IS NULL;
CREATE INDEX worker_ended ON worker (ended_at) WHERE ended_at IS NOT NULL;

CREATE TABLE job (
  no INTEGER PRIMARY KEY,
  endpoint_no INTEGER NOT NULL, id TEXT NOT NULL, place INTEGER NOT NULL, status INTEGER NOT NULL,
  low_priority INTEGER NOT NULL, starts INTEGER NOT NULL DEFAULT 0, excused INTEGER NOT NULL DEFAULT 0,
  retries INTEGER NOT NULL DEFAULT 0, worker_no INTEGER,
  created_at INTEGER NOT NULL, queued_at INTEGER NOT NULL, taken_at INTEGER, finished_at INTEGER, deadline_at INTEGER,
  ttl_end_at INTEGER NOT NULL, expires_at INTEGER NOT NULL,
  execution_timeout_ms INTEGER NOT NULL, retention_ms INTEGER NOT NULL,
  has_webhook INTEGER NOT NULL, keyed INTEGER NOT NULL, stop_wanted INTEGER NOT NULL DEFAULT 0,
  CHECK (status BETWEEN 0 AND 5),
  CHECK ((status >= 2) = (finished_at IS NOT NULL)),
  CHECK (status <> 1 OR (worker_no IS NOT NULL AND taken_at IS NOT NULL AND deadline_at IS NOT NULL))
) STRICT;
CREATE UNIQUE INDEX job_id ON job (endpoint_no, id);
CREATE INDEX job_waiting ON job (endpoint_no, place) WHERE status = 0;
CREATE INDEX job_waiting_normal ON job (endpoint_no, place) WHERE status = 0 AND low_priority = 0;
CREATE INDEX job_held ON job (worker_no) WHERE status = 1 OR stop_wanted = 1;
CREATE INDEX job_troubled ON job (endpoint_no, no) WHERE status >= 3;
CREATE INDEX job_deadline ON job (deadline_at) WHERE status = 1;
CREATE INDEX job_expiry ON job (expires_at) WHERE stop_wanted = 0;
CREATE INDEX job_listed ON job (endpoint_no, no);

CREATE TABLE job_input (job_no INTEGER PRIMARY KEY, body TEXT NOT NULL, webhook TEXT, s3_config TEXT, policy TEXT) STRICT;
CREATE TABLE job_output (job_no INTEGER PRIMARY KEY, output TEXT, error TEXT, progress TEXT) STRICT;
CREATE TABLE job_event (
  job_no INTEGER NOT NULL, n INTEGER NOT NULL, at INTEGER NOT NULL, event TEXT NOT NULL, worker_no INTEGER, note TEXT,
  PRIMARY KEY (job_no, n)
) STRICT, WITHOUT ROWID;
CREATE TABLE stream (job_no INTEGER PRIMARY KEY, next_index INTEGER NOT NULL, handed_index INTEGER NOT NULL) STRICT;
CREATE TABLE chunk (
  job_no INTEGER NOT NULL, "index" INTEGER NOT NULL, start INTEGER NOT NULL, output TEXT NOT NULL, metrics TEXT,
  PRIMARY KEY (job_no, "index")
) STRICT;
CREATE TABLE tally (
  endpoint_no INTEGER PRIMARY KEY, waiting INTEGER NOT NULL, waiting_normal INTEGER NOT NULL, running INTEGER NOT NULL,
  completed INTEGER NOT NULL, failed INTEGER NOT NULL, retried INTEGER NOT NULL
) STRICT;
CREATE TABLE idempotency (
  endpoint_no INTEGER NOT NULL, key_hash TEXT NOT NULL, body_hash TEXT NOT NULL, route TEXT NOT NULL,
  job_no INTEGER NOT NULL, job_id TEXT NOT NULL, last_status INTEGER NOT NULL, expires_at INTEGER NOT NULL,
  PRIMARY KEY (endpoint_no, key_hash)
) STRICT, WITHOUT ROWID;
CREATE INDEX idempotency_expiry ON idempotency (expires_at);
CREATE INDEX idempotency_job ON idempotency (job_no);
CREATE TABLE delivery (
  no INTEGER PRIMARY KEY AUTOINCREMENT, job_no INTEGER NOT NULL, job_id TEXT NOT NULL, endpoint_no INTEGER NOT NULL,
  webhook_id TEXT NOT NULL, url TEXT NOT NULL, tries INTEGER NOT NULL DEFAULT 0,
  state TEXT NOT NULL CHECK (state IN ('pending', 'delivered', 'failed')), next_at INTEGER, ended_at INTEGER
) STRICT;
CREATE INDEX delivery_due ON delivery (next_at) WHERE state = 'pending';
CREATE INDEX delivery_job ON delivery (job_no);
CREATE INDEX delivery_listed ON delivery (endpoint_no, no);
CREATE INDEX delivery_ended ON delivery (ended_at) WHERE ended_at IS NOT NULL;
CREATE TABLE attempt (
  delivery_no INTEGER NOT NULL, n INTEGER NOT NULL, at INTEGER NOT NULL, status INTEGER, error TEXT, duration_ms INTEGER NOT NULL,
  PRIMARY KEY (delivery_no, n)
) STRICT, WITHOUT ROWID;
CREATE TABLE decision (
  no INTEGER PRIMARY KEY AUTOINCREMENT, endpoint_no INTEGER NOT NULL, from_at INTEGER NOT NULL, until_at INTEGER NOT NULL,
  times INTEGER NOT NULL, inputs TEXT NOT NULL, outcome TEXT NOT NULL, reason TEXT NOT NULL
) STRICT;
CREATE INDEX decision_endpoint ON decision (endpoint_no, no);
CREATE INDEX decision_until ON decision (until_at);
`,
  // what servers tell each other about a worker; with a single server these stay empty
  `
ALTER TABLE worker ADD COLUMN asked_at INTEGER;
ALTER TABLE worker ADD COLUMN seen_at INTEGER NOT NULL DEFAULT 0;
ALTER TABLE worker ADD COLUMN busy_at INTEGER NOT NULL DEFAULT 0;
ALTER TABLE worker ADD COLUMN polled_at INTEGER NOT NULL DEFAULT 0;
ALTER TABLE worker ADD COLUMN slots INTEGER NOT NULL DEFAULT 1;
`,
  "CREATE INDEX delivery_job_id ON delivery (job_id, endpoint_no);",
  // what a worker was given, and the times of its life; and what each version was made of
  `
ALTER TABLE worker ADD COLUMN resources TEXT;
ALTER TABLE worker ADD COLUMN address TEXT;
ALTER TABLE worker ADD COLUMN throttled_at INTEGER;
ALTER TABLE worker ADD COLUMN placed_at INTEGER;
ALTER TABLE worker ADD COLUMN image_at INTEGER;
ALTER TABLE worker ADD COLUMN made_at INTEGER;
ALTER TABLE worker ADD COLUMN output_at INTEGER;
ALTER TABLE worker ADD COLUMN paused_at INTEGER;
ALTER TABLE worker ADD COLUMN resumed_at INTEGER;
ALTER TABLE worker ADD COLUMN trouble TEXT;
ALTER TABLE worker ADD COLUMN why TEXT;
CREATE INDEX worker_listed ON worker (endpoint_no, no);
ALTER TABLE endpoint ADD COLUMN proven_version INTEGER NOT NULL DEFAULT 0;
ALTER TABLE endpoint ADD COLUMN held_version INTEGER;
UPDATE endpoint SET proven_version = version WHERE failed_starts = 0;
CREATE TABLE version (
  endpoint_no INTEGER NOT NULL, n INTEGER NOT NULL, made_at INTEGER NOT NULL, settings TEXT NOT NULL, template TEXT NOT NULL,
  rollback_of INTEGER, proven_at INTEGER, held_at INTEGER, verdict TEXT,
  PRIMARY KEY (endpoint_no, n)
) STRICT, WITHOUT ROWID;
INSERT INTO version (endpoint_no, n, made_at, settings, template)
  SELECT e.no, e.version, e.created_at, e.settings, t.settings FROM endpoint e
  JOIN template t ON t.id = json_extract(e.settings, '$.templateId');
`,
  // user and password are both sealed
  `
CREATE TABLE registry_auth (
  no INTEGER PRIMARY KEY AUTOINCREMENT, id TEXT NOT NULL UNIQUE, owner_no INTEGER NOT NULL, name TEXT NOT NULL,
  username TEXT NOT NULL, password TEXT NOT NULL
) STRICT;
`,
  // the worker's name for the last append, so that an append that was stored but not acknowledged is not stored twice
  "ALTER TABLE stream ADD COLUMN name TEXT;",
  // texts too large for one write are stored in pieces before the rows that refer to them, and are deleted with those
  // rows
  `
CREATE TABLE text_piece (text_no INTEGER NOT NULL, n INTEGER NOT NULL, piece BLOB NOT NULL, PRIMARY KEY (text_no, n)) STRICT;
CREATE TABLE staged_text (no INTEGER PRIMARY KEY) STRICT;
ALTER TABLE job_input ADD COLUMN body_text INTEGER;
ALTER TABLE job_output ADD COLUMN output_text INTEGER;
ALTER TABLE job_output ADD COLUMN progress_text INTEGER;
ALTER TABLE chunk ADD COLUMN output_text INTEGER;

CREATE TRIGGER job_input_stored AFTER INSERT ON job_input WHEN new.body_text IS NOT NULL
  BEGIN DELETE FROM staged_text WHERE no = new.body_text; END;
CREATE TRIGGER job_input_deleted AFTER DELETE ON job_input WHEN old.body_text IS NOT NULL
  BEGIN DELETE FROM text_piece WHERE text_no = old.body_text; END;
CREATE TRIGGER job_output_stored AFTER INSERT ON job_output WHEN new.output_text IS NOT NULL OR new.progress_text IS NOT NULL
  BEGIN DELETE FROM staged_text WHERE no IN (new.output_text, new.progress_text); END;
CREATE TRIGGER job_output_changed AFTER UPDATE OF output_text ON job_output WHEN new.output_text IS NOT old.output_text
  BEGIN
    DELETE FROM staged_text WHERE no = new.output_text;
    DELETE FROM text_piece WHERE text_no = old.output_text;
  END;
CREATE TRIGGER job_progress_changed AFTER UPDATE OF progress_text ON job_output WHEN new.progress_text IS NOT old.progress_text
  BEGIN
    DELETE FROM staged_text WHERE no = new.progress_text;
    DELETE FROM text_piece WHERE text_no = old.progress_text;
  END;
CREATE TRIGGER job_output_deleted AFTER DELETE ON job_output WHEN old.output_text IS NOT NULL OR old.progress_text IS NOT NULL
  BEGIN DELETE FROM text_piece WHERE text_no IN (old.output_text, old.progress_text); END;
CREATE TRIGGER chunk_stored AFTER INSERT ON chunk WHEN new.output_text IS NOT NULL
  BEGIN DELETE FROM staged_text WHERE no = new.output_text; END;
CREATE TRIGGER chunk_deleted AFTER DELETE ON chunk WHEN old.output_text IS NOT NULL
  BEGIN DELETE FROM text_piece WHERE text_no = old.output_text; END;
`,
  // each sweep used to visit all expired jobs with pending webhooks: now it sees each of them once
  `
ALTER TABLE job ADD COLUMN awaits_delivery INTEGER NOT NULL DEFAULT 0;
DROP INDEX job_expiry;
CREATE INDEX job_expiry ON job (expires_at) WHERE stop_wanted = 0 AND awaits_delivery = 0;
`,
  // a worker's handle names its provider; fields that everybody may read stand beside the provider's own
  `
UPDATE worker SET handle = CASE WHEN handle ->> 'container' IS NULL
  THEN json_object('provider', 'process', 'ref', json(handle))
  ELSE json_object('provider', 'docker', 'ref', json_object('container', handle ->> 'container'),
    'network', json_patch('{"reachedFrom":"host"}', json_remove(handle, '$.container')))
  END WHERE handle IS NOT NULL;
`,
  // people and programs: names, roles, expiry, rotation, last use
  `
ALTER TABLE user ADD COLUMN name TEXT NOT NULL DEFAULT '';
ALTER TABLE user ADD COLUMN old_webhook_secret TEXT;
ALTER TABLE user ADD COLUMN old_webhook_secret_until INTEGER;
ALTER TABLE user ADD COLUMN created_at INTEGER;
ALTER TABLE user ADD COLUMN deleted_at INTEGER;
UPDATE user SET name = CASE WHEN is_admin = 1 THEN 'admin' ELSE id END;
DELETE FROM api_key WHERE revoked_at IS NOT NULL;
ALTER TABLE api_key DROP COLUMN revoked_at;
ALTER TABLE api_key ADD COLUMN id TEXT NOT NULL DEFAULT '';
ALTER TABLE api_key ADD COLUMN name TEXT NOT NULL DEFAULT '';
ALTER TABLE api_key ADD COLUMN created_at INTEGER;
ALTER TABLE api_key ADD COLUMN expires_at INTEGER;
ALTER TABLE api_key ADD COLUMN old_hash TEXT;
ALTER TABLE api_key ADD COLUMN old_prefix TEXT;
ALTER TABLE api_key ADD COLUMN old_until INTEGER;
UPDATE api_key SET id = lower(hex(randomblob(7))), name = CASE WHEN is_bootstrap = 1 THEN 'bootstrap' ELSE prefix END;
UPDATE api_key SET scope = json_object('kind', 'endpoints', 'access',
  (SELECT json_group_object(value, 'run') FROM json_each(scope, '$.endpointIds'))) WHERE scope ->> 'kind' = 'endpoints';
CREATE UNIQUE INDEX api_key_id ON api_key (id);
CREATE INDEX api_key_old ON api_key (old_hash) WHERE old_hash IS NOT NULL;
CREATE TABLE key_use (key_no INTEGER PRIMARY KEY, at INTEGER NOT NULL) STRICT;
CREATE TABLE environment_key (hash TEXT PRIMARY KEY) STRICT, WITHOUT ROWID;
`,
  // for workers' environments; values are sealed
  `
CREATE TABLE secret (
  no INTEGER PRIMARY KEY AUTOINCREMENT, id TEXT NOT NULL UNIQUE, owner_no INTEGER NOT NULL, name TEXT NOT NULL,
  description TEXT NOT NULL, value TEXT NOT NULL, created_at INTEGER NOT NULL
) STRICT;
CREATE UNIQUE INDEX secret_name ON secret (owner_no, name);
`,
  // every change that a caller has made
  `
CREATE TABLE audit (
  no INTEGER PRIMARY KEY AUTOINCREMENT, at INTEGER NOT NULL, user_no INTEGER NOT NULL, user_id TEXT NOT NULL,
  key_id TEXT NOT NULL, key_prefix TEXT NOT NULL, address TEXT, request_id TEXT, action TEXT NOT NULL,
  resource TEXT NOT NULL, before TEXT, after TEXT
) STRICT;
CREATE INDEX audit_at ON audit (at);
CREATE INDEX audit_user ON audit (user_no, no);
CREATE INDEX audit_resource ON audit (resource, no);
`,
  // webhooks that are due, endpoint by endpoint
  "CREATE INDEX delivery_of ON delivery (endpoint_no, next_at, no) WHERE state = 'pending' AND next_at IS NOT NULL;",
  // users' SSH keys
  `ALTER TABLE "user" ADD COLUMN pub_key TEXT NOT NULL DEFAULT '';`,
  // deliveries by their id and by their state; what receivers answered
  `
CREATE INDEX delivery_id ON delivery (webhook_id);
CREATE INDEX delivery_state ON delivery (endpoint_no, state, no);
ALTER TABLE attempt ADD COLUMN reply TEXT;
`,
  // what workers, pods and volumes have used, and what it costs
  `
ALTER TABLE "user" ADD COLUMN terms TEXT NOT NULL DEFAULT '{}';
ALTER TABLE worker ADD COLUMN paused_ms INTEGER NOT NULL DEFAULT 0;
ALTER TABLE volume ADD COLUMN sized_at INTEGER NOT NULL DEFAULT 0;
ALTER TABLE volume ADD COLUMN gb_ms INTEGER NOT NULL DEFAULT 0;
CREATE TABLE ended_volume (
  no INTEGER PRIMARY KEY, id TEXT NOT NULL, owner_no INTEGER NOT NULL, gb_ms INTEGER NOT NULL, ended_at INTEGER NOT NULL
) STRICT;
CREATE TABLE meter (
  kind TEXT NOT NULL, no INTEGER NOT NULL, amount INTEGER NOT NULL, at INTEGER NOT NULL, token TEXT NOT NULL,
  PRIMARY KEY (kind, no)
) STRICT, WITHOUT ROWID;
CREATE INDEX meter_at ON meter (at);
CREATE TABLE usage (
  kind TEXT NOT NULL, owner_no INTEGER NOT NULL, resource TEXT NOT NULL, span INTEGER NOT NULL, at INTEGER NOT NULL,
  gpu_type TEXT NOT NULL, amount INTEGER NOT NULL, gpu_cost INTEGER NOT NULL, cpu_cost INTEGER NOT NULL,
  disk_cost INTEGER NOT NULL, PRIMARY KEY (kind, owner_no, span, at, resource, gpu_type)
) STRICT, WITHOUT ROWID;
CREATE INDEX usage_resource ON usage (kind, owner_no, resource, span, at);
CREATE TABLE price (
  kind TEXT NOT NULL, name TEXT NOT NULL, cost INTEGER NOT NULL, PRIMARY KEY (kind, name)
) STRICT, WITHOUT ROWID;
`,
  ...receiverSteps,
  // a list of failed jobs passed every cancelled one
  `
DROP INDEX job_troubled;
CREATE INDEX job_failed ON job (endpoint_no, no) WHERE status = 3;
CREATE INDEX job_cancelled ON job (endpoint_no, no) WHERE status = 4;
CREATE INDEX job_timed_out ON job (endpoint_no, no) WHERE status = 5;
`,
  // the trace that a job's client named
  "ALTER TABLE job_input ADD COLUMN trace TEXT;",
  // secrets of the jobs that a worker has had, which its log must not show; sealed
  `
CREATE TABLE job_secret (
  no INTEGER PRIMARY KEY AUTOINCREMENT, worker_no INTEGER NOT NULL, value TEXT NOT NULL
) STRICT;
CREATE INDEX job_secret_of ON job_secret (worker_no, no);
`,
];

/** The schema version that this code writes. */
export const schemaVersion = steps.length;
