-- The data of one shard (docs/store.md). Forward only: a change is a new file with the next number. Texts that came
-- from a node are BLOBs: the original bytes, in any encoding. Minutes and days count from 1970-01-01 UTC. Times are
-- unix nanoseconds. An unsigned 64-bit number is stored as the signed number with the same bits.

-- closed_before: every minute before this one has its sums. raw_from: raw columns before this minute have expired.
CREATE TABLE watermark (
  name  TEXT PRIMARY KEY,
  value INTEGER NOT NULL
) WITHOUT ROWID;
INSERT INTO watermark (name, value) VALUES ('closed_before', 0), ('raw_from', 0);

-- A machine that sends data, as its latest session described it.
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

-- One run of a collector: its durable sequence and its accounting. `lost` and `endings` are LEB128 numbers by reason
-- and by ending, so that both enums may grow.
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

-- Names of processes, threads and executables. last_day: the latest day whose data may refer to the row. Rows with a
-- last_day before the oldest stored day are removed.
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
  path     INTEGER NOT NULL,  -- string
  last_day INTEGER NOT NULL,
  UNIQUE (kind, bytes)
);

CREATE TABLE process (
  id              INTEGER PRIMARY KEY,
  machine         INTEGER NOT NULL,
  boot            INTEGER NOT NULL,  -- string: of the boot id
  pid             INTEGER NOT NULL,
  start_time_ns   INTEGER NOT NULL,
  exec_sequence   INTEGER NOT NULL,
  parent          INTEGER NOT NULL,
  comm            INTEGER NOT NULL,  -- string, as the next columns
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
  name     INTEGER NOT NULL,  -- string
  last_day INTEGER NOT NULL,
  UNIQUE (process, tid, name)
);
CREATE INDEX thread_last_day ON thread (last_day);

-- The trie of one day, in pieces. Each commit adds one piece, with frames and nodes that continue the earlier pieces.
-- Ids are dense over the day's pieces in order of id. raw_bytes: 0 means that `columns` is stored uncompressed;
-- otherwise it is zstd of that many bytes.
CREATE TABLE trie_chunk (
  id        INTEGER PRIMARY KEY AUTOINCREMENT,
  day       INTEGER NOT NULL,
  raw_bytes INTEGER NOT NULL,
  columns   BLOB NOT NULL
);
CREATE INDEX trie_chunk_day ON trie_chunk (day);

-- Samples of one batch within one minute. The id is the order of commits. Exporters' cursors refer to ids, so ids are
-- never reused.
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

-- Sums over one closed minute. A minute gets another row if samples arrive late.
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
