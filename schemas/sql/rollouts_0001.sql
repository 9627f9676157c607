-- The times at which workloads began to run another version (docs/rollouts.md). Never change this file: a change of the
-- schema is a new file.

CREATE TABLE rollout (
  cluster    BLOB    NOT NULL,  -- the node id of the cluster's watcher
  id         BLOB    NOT NULL,
  at         INTEGER NOT NULL,  -- unix ns
  attributes BLOB    NOT NULL,  -- in the encoding of OTEL_RESOURCE_ATTRIBUTES
  PRIMARY KEY (cluster, id)
) WITHOUT ROWID;
