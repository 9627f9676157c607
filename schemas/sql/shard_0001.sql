-- The data of one shard (docs/store.md). Never change this file: a change of the schema is a new file with the next
-- number. Texts from nodes are BLOBs, because they may have any bytes. Minutes and days are numbered from 1970-01-01
-- UTC. Times are unix nanoseconds. An unsigned 64-bit number is stored as the signed number with the same bits.

-- closed_before: for all minutes before this minute, the sums are complete. raw_from: the single samples of all minutes
-- before this minute were removed.
CREATE TABLE watermark (
  name  TEXT PRIMARY KEY,
  value INTEGER NOT NULL
) WITHOUT ROWID;
INSERT INTO watermark (name, value) VALUES ('closed_before', 0), ('raw_from', 0);

-- A machine that sends data, as described by its latest session.
CREATE TABLE machine (
  id             INTEGER PRIMARY KEY,
  node_id        BLOB NOT NULL UNIQUE,
  host_name      BLOB NOT NULL,
  agent_version  BLOB NOT NULL,
  kernel_release BLOB NOT NULL,
  architecture   BLOB NOT NULL,
  cpu_count      INTEGER NOT NULL,
  sample_rate_hz INTEGER NOT NULL
);

-- A session of a collector: the number of its last durable batch, and its accounting. `lost` has one LEB128 number per
-- loss reason, and `endings` one per ending. So later releases can add reasons and endings.
CREATE TABLE session (
  id               BLOB PRIMARY KEY,
  machine          INTEGER NOT NULL,
  boot_id          BLOB NOT NULL,
  last_seen        INTEGER NOT NULL,
  durable_sequence INTEGER NOT NULL,
  captured         INTEGER NOT NULL,
  idle             INTEGER NOT NULL,
  lost             BLOB NOT NULL,
  stored           INTEGER NOT NULL,
  wire_bytes       INTEGER NOT NULL,
  endings          BLOB NOT NULL
);
CREATE INDEX session_last_seen ON session (last_seen);

-- Names of processes, threads and executables. last_day: the latest day with data that may refer to this row. Rows with
-- a last_day before the oldest stored day are removed.
CREATE TABLE string (
  id       INTEGER PRIMARY KEY,
  text     BLOB NOT NULL UNIQUE,
  last_day INTEGER NOT NULL
);
CREATE INDEX string_last_day ON string (last_day);

CREATE TABLE executable (
  id       INTEGER PRIMARY KEY,
  kind     INTEGER NOT NULL,
  bytes    BLOB NOT NULL,
  path     INTEGER NOT NULL,  -- id in the table string
  last_day INTEGER NOT NULL,
  UNIQUE (kind, bytes)
);

CREATE TABLE process (
  id              INTEGER PRIMARY KEY,
  machine         INTEGER NOT NULL,
  boot            INTEGER NOT NULL,  -- the boot id: id in the table string
  pid             INTEGER NOT NULL,
  start_time_ns   INTEGER NOT NULL,
  exec_sequence   INTEGER NOT NULL,
  parent          INTEGER NOT NULL,
  comm            INTEGER NOT NULL,  -- id in the table string, like the next three columns
  executable_path INTEGER NOT NULL,
  container_id    INTEGER NOT NULL,
  cgroup_path     INTEGER NOT NULL,
  executable      INTEGER NOT NULL,
  first_seen      INTEGER NOT NULL,
  last_seen       INTEGER NOT NULL,
  UNIQUE (machine, boot, pid, start_time_ns, exec_sequence)
);
CREATE INDEX process_last_seen ON process (last_seen);

CREATE TABLE thread (
  id       INTEGER PRIMARY KEY,
  process  INTEGER NOT NULL,
  tid      INTEGER NOT NULL,
  name     INTEGER NOT NULL,  -- id in the table string
  last_day INTEGER NOT NULL,
  UNIQUE (process, tid, name)
);
CREATE INDEX thread_last_day ON thread (last_day);

-- The trie of one day, in pieces. Each commit adds a piece with its new frames and nodes. Frames and nodes are numbered
-- without gaps over all pieces of a day, in order of the pieces' ids. raw_bytes: 0 if `columns` is not compressed;
-- otherwise `columns` is compressed with zstd, and raw_bytes is its size before compression.
CREATE TABLE trie_chunk (
  id        INTEGER PRIMARY KEY AUTOINCREMENT,
  day       INTEGER NOT NULL,
  raw_bytes INTEGER NOT NULL,
  columns   BLOB NOT NULL
);
CREATE INDEX trie_chunk_day ON trie_chunk (day);

-- Samples of one batch within one minute. Later commits have higher ids. Ids are never reused, because the positions of
-- exporters refer to ids.
CREATE TABLE sample_chunk (
  id        INTEGER PRIMARY KEY AUTOINCREMENT,
  minute    INTEGER NOT NULL,
  machine   INTEGER NOT NULL,
  type      INTEGER NOT NULL,
  samples   INTEGER NOT NULL,
  raw_bytes INTEGER NOT NULL,
  columns   BLOB NOT NULL
);
CREATE INDEX sample_chunk_minute ON sample_chunk (minute, machine, type);

-- Sums over the samples of one minute. If samples arrive after the sums were made, the minute gets another row.
CREATE TABLE minute_sum (
  id        INTEGER PRIMARY KEY,
  minute    INTEGER NOT NULL,
  machine   INTEGER NOT NULL,
  type      INTEGER NOT NULL,
  pairs     INTEGER NOT NULL,
  raw_bytes INTEGER NOT NULL,
  columns   BLOB NOT NULL
);
CREATE INDEX minute_sum_minute ON minute_sum (minute, machine, type);
