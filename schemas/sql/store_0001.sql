-- Data of the whole data directory (docs/store.md). Forward only.

-- The progress of each exporter in each shard: the id of the last sample chunk that it has sent.
CREATE TABLE cursor (
  exporter TEXT NOT NULL,
  shard    INTEGER NOT NULL,
  chunk    INTEGER NOT NULL,
  PRIMARY KEY (exporter, shard)
) WITHOUT ROWID;

-- The number of shards over which node ids were last distributed. Sessions move to other shards when it changes.
CREATE TABLE layout (
  shards INTEGER NOT NULL
);
INSERT INTO layout (shards) VALUES (0);
