-- States of hosts, containers, pods and other entities over time, as nodes and k8s-collectors (the watchers of
-- clusters) sent them (docs/metadata.md). Never change this file: a change of the schema is a new file.

CREATE TABLE state (
  cluster    INTEGER NOT NULL,  -- 1: sent by the watcher of a cluster, 0: sent by a node
  teller     BLOB    NOT NULL,  -- the node id of the sender
  kind       INTEGER NOT NULL,  -- EntityKind
  id         BLOB    NOT NULL,
  begins     INTEGER NOT NULL,  -- unix ns; the smallest integer: from the beginning
  ends       INTEGER NOT NULL,  -- unix ns; the largest integer: the state has not ended
  used       INTEGER NOT NULL,  -- 1: a sample was joined with this state
  attributes BLOB    NOT NULL,  -- in the encoding of OTEL_RESOURCE_ATTRIBUTES
  PRIMARY KEY (cluster, teller, kind, id, begins)
);
CREATE INDEX state_by_end ON state (ends);
