-- A sum and a gauge with the same name and unit are two different types.
CREATE TABLE new_sample_type (
  id          INTEGER PRIMARY KEY,
  name        BLOB NOT NULL,
  unit        BLOB NOT NULL,
  machine     INTEGER NOT NULL,  -- the first machine that sent this type
  last_day    INTEGER NOT NULL,  -- the last day on which samples may have this type
  aggregation INTEGER NOT NULL DEFAULT 0,
  UNIQUE (name, unit, aggregation)
);
INSERT INTO new_sample_type (id, name, unit, machine, last_day, aggregation)
  SELECT id, name, unit, machine, last_day, aggregation FROM sample_type;
DROP TABLE sample_type;
ALTER TABLE new_sample_type RENAME TO sample_type;
-- From this version of the schema on, session.types also contains the aggregation of each type, after the unit. Earlier
-- contents are discarded. So samples of other types that were counted before now count as CPU samples.
UPDATE session SET types = x'';
