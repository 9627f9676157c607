-- Exporters send rollouts in the order in which the reducer got them. no: increases with each rollout.
ALTER TABLE rollout ADD COLUMN no INTEGER NOT NULL DEFAULT 0;
UPDATE rollout SET no = numbered.no
  FROM (SELECT cluster, id, row_number() OVER (ORDER BY at, cluster, id) AS no FROM rollout) AS numbered
  WHERE rollout.cluster = numbered.cluster AND rollout.id = numbered.id;

-- The highest number that a rollout ever had, also if the rollout was removed. One row.
CREATE TABLE rollout_number (
  id      INTEGER PRIMARY KEY CHECK (id = 1),
  highest INTEGER NOT NULL
);
INSERT INTO rollout_number (id, highest) SELECT 1, coalesce(max(no), 0) FROM rollout;
