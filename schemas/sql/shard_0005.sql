-- The types of samples. A built-in type has the same number as on the wire. Another type gets its number when a sample
-- first has it. The row of a type that no sample has is removed after a while.
CREATE TABLE sample_type (
  id       INTEGER PRIMARY KEY,
  name     BLOB NOT NULL,
  unit     BLOB NOT NULL,
  machine  INTEGER NOT NULL,  -- that was the first to bring it
  last_day INTEGER NOT NULL,  -- that samples may have it on, as in the table string
  UNIQUE (name, unit)
);
INSERT INTO sample_type SELECT id, CAST(name AS BLOB), CAST('nanoseconds' AS BLOB), 0,
    coalesce((SELECT max(day) FROM trie_chunk), strftime('%s', 'now') / 86400)
  FROM (SELECT 1 AS id, 'cpu' AS name UNION ALL SELECT 2, 'off_cpu')
  WHERE id IN (SELECT type FROM sample_chunk UNION SELECT type FROM minute_sum);
