-- Data that belongs to all shards of a data directory (docs/store.md). Never change this file: a change of the schema
-- is a new file.

-- The position of each exporter in each shard: the id of the last row of sample_chunk that it has sent.
CREATE TABLE cursor (
  exporter TEXT NOT NULL,
  shard    INTEGER NOT NULL,
  chunk    INTEGER NOT NULL,
  PRIMARY KEY (exporter, shard)
) WITHOUT ROWID;

-- The number of shards when the reducer last ran. If the number changes, sessions move to other shards.
CREATE TABLE layout (
  shards INTEGER NOT NULL
);
INSERT INTO layout (shards) VALUES (0);
