/** Steps of the schema for where webhooks go. */
export const receiverSteps: readonly string[] = [
  // where webhooks go, how that works out, and what is held back for receivers that were paused
  `
CREATE TABLE receiver (
  no INTEGER PRIMARY KEY AUTOINCREMENT, id TEXT NOT NULL UNIQUE, owner_no INTEGER NOT NULL, origin TEXT NOT NULL,
  failures INTEGER NOT NULL, failing_at INTEGER, error TEXT, attempted_at INTEGER NOT NULL, paused_at INTEGER,
  UNIQUE (owner_no, origin)
) STRICT;
CREATE INDEX receiver_paused ON receiver (no) WHERE paused_at IS NOT NULL;
CREATE INDEX receiver_attempted ON receiver (attempted_at) WHERE paused_at IS NULL;
ALTER TABLE delivery ADD COLUMN held_by INTEGER;
CREATE INDEX delivery_held ON delivery (held_by, no) WHERE held_by IS NOT NULL;
`,
  // what paused receivers hold has a size, and those that are resumed are found at once
  `
ALTER TABLE delivery ADD COLUMN held_bytes INTEGER;
UPDATE delivery SET held_by = NULL WHERE held_by IS NOT NULL AND state <> 'pending';
UPDATE delivery SET held_bytes = 0 WHERE held_by IS NOT NULL;
DROP INDEX delivery_held;
CREATE INDEX delivery_held ON delivery (held_by, no, held_bytes) WHERE held_by IS NOT NULL;
CREATE INDEX delivery_held_of ON delivery (endpoint_no, no) WHERE held_by IS NOT NULL;
ALTER TABLE receiver ADD COLUMN holds INTEGER NOT NULL DEFAULT 0;
UPDATE receiver SET holds = 1 WHERE no IN (SELECT held_by FROM delivery WHERE held_by IS NOT NULL);
DROP INDEX receiver_paused;
CREATE INDEX receiver_resumed ON receiver (no) WHERE holds = 1 AND paused_at IS NULL;
`,
];
