-- Bytes that the data of a node take in this file, by day. The commit that stores data also changes these numbers. They
-- contain an estimate of what SQLite needs for each row. `day` of samples, sums and events: the day of their time.
-- `day` of definitions (strings, executables, pieces of processes and tries): the day on which they arrived. A
-- definition counts for the first machine that sent it. Machine 0: the texts that earlier releases stored.
CREATE TABLE node_day (
  day              INTEGER NOT NULL,
  machine          INTEGER NOT NULL,
  data_bytes       INTEGER NOT NULL,  -- of stored samples, sums and events
  definition_bytes INTEGER NOT NULL,  -- of stored definitions
  charged_bytes    INTEGER NOT NULL,  -- of all definitions of the day, also of those that were removed
  received_bytes   INTEGER NOT NULL,  -- from the network
  PRIMARY KEY (day, machine)
) WITHOUT ROWID;

-- The index contains a hash instead of the text, so a text is stored once. hash: SipHash-2-4 of the text, 47 bits. The
-- key is secret, so a node cannot send many texts with the same hash. machine: the only machine that uses the text; 0:
-- several, or unknown. Ids are never reused, because texts are also removed while data refer to them.
CREATE TABLE new_string (
  id       INTEGER PRIMARY KEY AUTOINCREMENT,
  hash     INTEGER NOT NULL,
  last_day INTEGER NOT NULL,
  machine  INTEGER NOT NULL,
  text     BLOB NOT NULL
);
INSERT INTO watermark (name, value) VALUES ('string_key_0', random()), ('string_key_1', random());

CREATE TABLE new_executable (
  id       INTEGER PRIMARY KEY AUTOINCREMENT,
  kind     INTEGER NOT NULL,
  bytes    BLOB NOT NULL,
  path     INTEGER NOT NULL,  -- id in the table string
  last_day INTEGER NOT NULL,
  machine  INTEGER NOT NULL,  -- as in the table string
  UNIQUE (kind, bytes)
);
INSERT INTO new_executable (id, kind, bytes, path, last_day, machine)
  SELECT id, kind, bytes, path, last_day, 0 FROM executable ORDER BY id;
DROP TABLE executable;
ALTER TABLE new_executable RENAME TO executable;
CREATE INDEX executable_last_day ON executable (last_day, machine);

-- Each piece has the processes of one machine. 0: an earlier release wrote the piece, for all machines.
ALTER TABLE process_chunk ADD COLUMN machine INTEGER NOT NULL DEFAULT 0;
DROP INDEX process_chunk_slots;
CREATE INDEX process_chunk_slots ON process_chunk (last_slot, machine, first_slot);
