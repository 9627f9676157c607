-- Processes and threads as columns (docs/store.md): as rows they cost more than the samples of a load that starts many.
-- A piece describes what samples of one slot of ten minutes, or of some slots in a row, refer to; slots count from
-- 1970-01-01 UTC. Of a process or thread described more than once, the piece with the highest id is right.
-- raw_bytes: as in trie_chunk.
CREATE TABLE process_chunk (
  id         INTEGER PRIMARY KEY,
  first_slot INTEGER NOT NULL,
  last_slot  INTEGER NOT NULL,
  raw_bytes  INTEGER NOT NULL,
  columns    BLOB NOT NULL
);
CREATE INDEX process_chunk_slots ON process_chunk (last_slot, first_slot);

-- The next numbers to be given.
INSERT INTO watermark (name, value) VALUES ('next_process', 1), ('next_thread', 1);
