-- What belongs to the whole data directory (docs/store.md). Forward only.

-- How far each exporter got in each shard: the id of the last sample chunk it has sent.
CREATE TABLE cursor (
  exporter TEXT NOT NULL,
  shard    INTEGER NOT NULL,
  chunk    INTEGER NOT NULL,
  PRIMARY KEY (exporter, shard)
) WITHOUT ROWID;

-- The number of shards that node ids were last spread over: sessions move when it changes.
CREATE TABLE layout (
  shards INTEGER NOT NULL
);
INSERT INTO layout (shards) VALUES (0);
