-- The changes of the machines' loss totals, in the order of their commits: exporters send them. The totals are in the table
-- session. A row is the sum of one machine, type and reason over ten seconds. type, unit, aggregation: as in sample_type;
-- type '': process events. samples: below 0 if samples arrived that had counted as lost. first, last: unix ns of the first
-- and of the last commit in the sum.
CREATE TABLE loss (
  id          INTEGER PRIMARY KEY AUTOINCREMENT,
  machine     INTEGER NOT NULL,
  type        BLOB    NOT NULL,
  unit        BLOB    NOT NULL,
  aggregation INTEGER NOT NULL,
  reason      INTEGER NOT NULL,
  samples     INTEGER NOT NULL,
  first       INTEGER NOT NULL,
  last        INTEGER NOT NULL
);

-- Rows of `loss` up to this id do not change any more.
INSERT INTO watermark (name, value) VALUES ('losses_sealed', 0);
