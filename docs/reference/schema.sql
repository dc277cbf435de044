CREATE TABLE counter (name TEXT PRIMARY KEY, value INTEGER NOT NULL) STRICT, WITHOUT ROWID;

CREATE TABLE user (no INTEGER PRIMARY KEY AUTOINCREMENT, id TEXT NOT NULL UNIQUE, is_admin INTEGER NOT NULL, webhook_secret TEXT NOT NULL, name TEXT NOT NULL DEFAULT '', old_webhook_secret TEXT, old_webhook_secret_until INTEGER, created_at INTEGER, deleted_at INTEGER, pub_key TEXT NOT NULL DEFAULT '', terms TEXT NOT NULL DEFAULT '{}') STRICT;

CREATE TABLE sqlite_sequence(name,seq);

CREATE TABLE api_key (
  no INTEGER PRIMARY KEY AUTOINCREMENT, hash TEXT NOT NULL UNIQUE, prefix TEXT NOT NULL, scope TEXT NOT NULL,
  owner_no INTEGER NOT NULL, is_bootstrap INTEGER NOT NULL, id TEXT NOT NULL DEFAULT '', name TEXT NOT NULL DEFAULT '', created_at INTEGER, expires_at INTEGER, old_hash TEXT, old_prefix TEXT, old_until INTEGER) STRICT;

CREATE TABLE host (no INTEGER PRIMARY KEY AUTOINCREMENT, id TEXT NOT NULL UNIQUE, seen_at INTEGER NOT NULL) STRICT;

CREATE TABLE template (no INTEGER PRIMARY KEY AUTOINCREMENT, id TEXT NOT NULL UNIQUE, owner_no INTEGER NOT NULL, settings TEXT NOT NULL) STRICT;

CREATE TABLE volume (
  no INTEGER PRIMARY KEY AUTOINCREMENT, id TEXT NOT NULL UNIQUE, owner_no INTEGER NOT NULL,
  name TEXT NOT NULL, size INTEGER NOT NULL, data_center_id TEXT NOT NULL
, sized_at INTEGER NOT NULL DEFAULT 0, gb_ms INTEGER NOT NULL DEFAULT 0) STRICT;

CREATE TABLE endpoint (
  no INTEGER PRIMARY KEY AUTOINCREMENT, id TEXT NOT NULL UNIQUE, owner_no INTEGER NOT NULL, settings TEXT NOT NULL,
  version INTEGER NOT NULL, created_at INTEGER NOT NULL, deleted_at INTEGER,
  failed_starts INTEGER NOT NULL DEFAULT 0, failed_at INTEGER, verdict TEXT
, proven_version INTEGER NOT NULL DEFAULT 0, held_version INTEGER) STRICT;

CREATE TABLE worker (
  no INTEGER PRIMARY KEY AUTOINCREMENT, id TEXT NOT NULL UNIQUE, endpoint_no INTEGER NOT NULL, version INTEGER NOT NULL,
  host_no INTEGER NOT NULL, wanted TEXT NOT NULL CHECK (wanted IN ('running', 'closed', 'paused', 'stopped')),
  secret_hash TEXT, handle TEXT, worker_url TEXT, created_at INTEGER NOT NULL, started_at INTEGER, ready_at INTEGER,
  closed_at INTEGER, stop_at INTEGER, kill_at INTEGER, ended_at INTEGER, last_done_at INTEGER,
  has_pinged INTEGER NOT NULL DEFAULT 0, exit TEXT
, asked_at INTEGER, seen_at INTEGER NOT NULL DEFAULT 0, busy_at INTEGER NOT NULL DEFAULT 0, polled_at INTEGER NOT NULL DEFAULT 0, slots INTEGER NOT NULL DEFAULT 1, resources TEXT, address TEXT, throttled_at INTEGER, placed_at INTEGER, image_at INTEGER, made_at INTEGER, output_at INTEGER, paused_at INTEGER, resumed_at INTEGER, trouble TEXT, why TEXT, paused_ms INTEGER NOT NULL DEFAULT 0) STRICT;

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
  has_webhook INTEGER NOT NULL, keyed INTEGER NOT NULL, stop_wanted INTEGER NOT NULL DEFAULT 0, awaits_delivery INTEGER NOT NULL DEFAULT 0,
  CHECK (status BETWEEN 0 AND 5),
  CHECK ((status >= 2) = (finished_at IS NOT NULL)),
  CHECK (status <> 1 OR (worker_no IS NOT NULL AND taken_at IS NOT NULL AND deadline_at IS NOT NULL))
) STRICT;

CREATE UNIQUE INDEX job_id ON job (endpoint_no, id);

CREATE INDEX job_waiting ON job (endpoint_no, place) WHERE status = 0;

CREATE INDEX job_waiting_normal ON job (endpoint_no, place) WHERE status = 0 AND low_priority = 0;

CREATE INDEX job_held ON job (worker_no) WHERE status = 1 OR stop_wanted = 1;

CREATE INDEX job_deadline ON job (deadline_at) WHERE status = 1;

CREATE INDEX job_listed ON job (endpoint_no, no);

CREATE TABLE job_input (job_no INTEGER PRIMARY KEY, body TEXT NOT NULL, webhook TEXT, s3_config TEXT, policy TEXT, body_text INTEGER, trace TEXT) STRICT;

CREATE TABLE job_output (job_no INTEGER PRIMARY KEY, output TEXT, error TEXT, progress TEXT, output_text INTEGER, progress_text INTEGER) STRICT;

CREATE TABLE job_event (
  job_no INTEGER NOT NULL, n INTEGER NOT NULL, at INTEGER NOT NULL, event TEXT NOT NULL, worker_no INTEGER, note TEXT,
  PRIMARY KEY (job_no, n)
) STRICT, WITHOUT ROWID;

CREATE TABLE stream (job_no INTEGER PRIMARY KEY, next_index INTEGER NOT NULL, handed_index INTEGER NOT NULL, name TEXT) STRICT;

CREATE TABLE chunk (
  job_no INTEGER NOT NULL, "index" INTEGER NOT NULL, start INTEGER NOT NULL, output TEXT NOT NULL, metrics TEXT, output_text INTEGER,
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
, held_by INTEGER, held_bytes INTEGER) STRICT;

CREATE INDEX delivery_due ON delivery (next_at) WHERE state = 'pending';

CREATE INDEX delivery_job ON delivery (job_no);

CREATE INDEX delivery_listed ON delivery (endpoint_no, no);

CREATE INDEX delivery_ended ON delivery (ended_at) WHERE ended_at IS NOT NULL;

CREATE TABLE attempt (
  delivery_no INTEGER NOT NULL, n INTEGER NOT NULL, at INTEGER NOT NULL, status INTEGER, error TEXT, duration_ms INTEGER NOT NULL, reply TEXT,
  PRIMARY KEY (delivery_no, n)
) STRICT, WITHOUT ROWID;

CREATE TABLE decision (
  no INTEGER PRIMARY KEY AUTOINCREMENT, endpoint_no INTEGER NOT NULL, from_at INTEGER NOT NULL, until_at INTEGER NOT NULL,
  times INTEGER NOT NULL, inputs TEXT NOT NULL, outcome TEXT NOT NULL, reason TEXT NOT NULL
) STRICT;

CREATE INDEX decision_endpoint ON decision (endpoint_no, no);

CREATE INDEX decision_until ON decision (until_at);

CREATE INDEX delivery_job_id ON delivery (job_id, endpoint_no);

CREATE INDEX worker_listed ON worker (endpoint_no, no);

CREATE TABLE version (
  endpoint_no INTEGER NOT NULL, n INTEGER NOT NULL, made_at INTEGER NOT NULL, settings TEXT NOT NULL, template TEXT NOT NULL,
  rollback_of INTEGER, proven_at INTEGER, held_at INTEGER, verdict TEXT,
  PRIMARY KEY (endpoint_no, n)
) STRICT, WITHOUT ROWID;

CREATE TABLE registry_auth (
  no INTEGER PRIMARY KEY AUTOINCREMENT, id TEXT NOT NULL UNIQUE, owner_no INTEGER NOT NULL, name TEXT NOT NULL,
  username TEXT NOT NULL, password TEXT NOT NULL
) STRICT;

CREATE TABLE text_piece (text_no INTEGER NOT NULL, n INTEGER NOT NULL, piece BLOB NOT NULL, PRIMARY KEY (text_no, n)) STRICT;

CREATE TABLE staged_text (no INTEGER PRIMARY KEY) STRICT;

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

CREATE INDEX job_expiry ON job (expires_at) WHERE stop_wanted = 0 AND awaits_delivery = 0;

CREATE UNIQUE INDEX api_key_id ON api_key (id);

CREATE INDEX api_key_old ON api_key (old_hash) WHERE old_hash IS NOT NULL;

CREATE TABLE key_use (key_no INTEGER PRIMARY KEY, at INTEGER NOT NULL) STRICT;

CREATE TABLE environment_key (hash TEXT PRIMARY KEY) STRICT, WITHOUT ROWID;

CREATE TABLE secret (
  no INTEGER PRIMARY KEY AUTOINCREMENT, id TEXT NOT NULL UNIQUE, owner_no INTEGER NOT NULL, name TEXT NOT NULL,
  description TEXT NOT NULL, value TEXT NOT NULL, created_at INTEGER NOT NULL
) STRICT;

CREATE UNIQUE INDEX secret_name ON secret (owner_no, name);

CREATE TABLE audit (
  no INTEGER PRIMARY KEY AUTOINCREMENT, at INTEGER NOT NULL, user_no INTEGER NOT NULL, user_id TEXT NOT NULL,
  key_id TEXT NOT NULL, key_prefix TEXT NOT NULL, address TEXT, request_id TEXT, action TEXT NOT NULL,
  resource TEXT NOT NULL, before TEXT, after TEXT
) STRICT;

CREATE INDEX audit_at ON audit (at);

CREATE INDEX audit_user ON audit (user_no, no);

CREATE INDEX audit_resource ON audit (resource, no);

CREATE INDEX delivery_of ON delivery (endpoint_no, next_at, no) WHERE state = 'pending' AND next_at IS NOT NULL;

CREATE INDEX delivery_id ON delivery (webhook_id);

CREATE INDEX delivery_state ON delivery (endpoint_no, state, no);

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

CREATE TABLE receiver (
  no INTEGER PRIMARY KEY AUTOINCREMENT, id TEXT NOT NULL UNIQUE, owner_no INTEGER NOT NULL, origin TEXT NOT NULL,
  failures INTEGER NOT NULL, failing_at INTEGER, error TEXT, attempted_at INTEGER NOT NULL, paused_at INTEGER, holds INTEGER NOT NULL DEFAULT 0,
  UNIQUE (owner_no, origin)
) STRICT;

CREATE INDEX receiver_attempted ON receiver (attempted_at) WHERE paused_at IS NULL;

CREATE INDEX delivery_held ON delivery (held_by, no, held_bytes) WHERE held_by IS NOT NULL;

CREATE INDEX delivery_held_of ON delivery (endpoint_no, no) WHERE held_by IS NOT NULL;

CREATE INDEX receiver_resumed ON receiver (no) WHERE holds = 1 AND paused_at IS NULL;

CREATE INDEX job_failed ON job (endpoint_no, no) WHERE status = 3;

CREATE INDEX job_cancelled ON job (endpoint_no, no) WHERE status = 4;

CREATE INDEX job_timed_out ON job (endpoint_no, no) WHERE status = 5;

CREATE TABLE job_secret (
  no INTEGER PRIMARY KEY AUTOINCREMENT, worker_no INTEGER NOT NULL, value TEXT NOT NULL
) STRICT;

CREATE INDEX job_secret_of ON job_secret (worker_no, no);
