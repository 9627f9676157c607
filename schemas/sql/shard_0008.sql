-- A sum and a gauge of the same name and unit are two types.
CREATE TABLE new_sample_type (
  id          INTEGER PRIMARY KEY,
  name        BLOB NOT NULL,
  unit        BLOB NOT NULL,
  machine     INTEGER NOT NULL,  -- that was the first to bring it
  last_day    INTEGER NOT NULL,  -- that samples may have it on, as in the table string
  aggregation INTEGER NOT NULL DEFAULT 0,
  UNIQUE (name, unit, aggregation)
);
INSERT INTO new_sample_type (id, name, unit, machine, last_day, aggregation)
  SELECT id, name, unit, machine, last_day, aggregation FROM sample_type;
DROP TABLE sample_type;
ALTER TABLE new_sample_type RENAME TO sample_type;
-- From now on, `types` also contains each type's aggregation, after the unit. Earlier contents are discarded, so those
-- samples count as CPU samples.
UPDATE session SET types = x'';
