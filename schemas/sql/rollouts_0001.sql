-- The times when workloads began to run another version (docs/rollouts.md). Forward only.

CREATE TABLE rollout (
  cluster    BLOB    NOT NULL,  -- the watcher's node id
  id         BLOB    NOT NULL,
  at         INTEGER NOT NULL,  -- unix ns
  attributes BLOB    NOT NULL,  -- in the encoding of OTEL_RESOURCE_ATTRIBUTES
  PRIMARY KEY (cluster, id)
) WITHOUT ROWID;
