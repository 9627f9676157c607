-- States of hosts, containers and pods over time, as nodes and watchers sent them (docs/metadata.md). Forward only.

CREATE TABLE state (
  cluster    INTEGER NOT NULL,  -- 1: told by a cluster's watcher, 0: by a node
  teller     BLOB    NOT NULL,  -- its node id
  kind       INTEGER NOT NULL,  -- EntityKind
  id         BLOB    NOT NULL,
  begins     INTEGER NOT NULL,  -- unix ns; the least integer: since ever
  ends       INTEGER NOT NULL,  -- the greatest integer: holds
  used       INTEGER NOT NULL,  -- 1: a sample was joined with it
  attributes BLOB    NOT NULL,  -- in the encoding of OTEL_RESOURCE_ATTRIBUTES
  PRIMARY KEY (cluster, teller, kind, id, begins)
);
CREATE INDEX state_by_end ON state (ends);
