-- The types of samples. A built-in type has the same id as its number on the wire. Any other type gets its id when the
-- first sample of this type is stored. If no stored sample has a type any more, its row is removed later.
CREATE TABLE sample_type (
  id       INTEGER PRIMARY KEY,
  name     BLOB NOT NULL,
  unit     BLOB NOT NULL,
  machine  INTEGER NOT NULL,  -- the first machine that sent this type
  last_day INTEGER NOT NULL,  -- the last day on which samples may have this type
  UNIQUE (name, unit)
);
INSERT INTO sample_type SELECT id, CAST(name AS BLOB), CAST('nanoseconds' AS BLOB), 0,
    coalesce((SELECT max(day) FROM trie_chunk), strftime('%s', 'now') / 86400)
  FROM (SELECT 1 AS id, 'cpu' AS name UNION ALL SELECT 2, 'off_cpu')
  WHERE id IN (SELECT type FROM sample_chunk UNION SELECT type FROM minute_sum);
