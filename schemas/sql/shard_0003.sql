-- Processes and threads as columns (docs/store.md). As rows they cost more than the samples if a load starts many
-- processes. A piece describes the processes and threads that the samples of one slot of ten minutes refer to, or of
-- several slots in a row. Slots count from 1970-01-01 UTC. If a process or thread is described more than once, the
-- piece with the highest id is right. raw_bytes: as in trie_chunk.
CREATE TABLE process_chunk (
  id         INTEGER PRIMARY KEY,
  first_slot INTEGER NOT NULL,
  last_slot  INTEGER NOT NULL,
  raw_bytes  INTEGER NOT NULL,
  columns    BLOB NOT NULL
);
CREATE INDEX process_chunk_slots ON process_chunk (last_slot, first_slot);

-- The next numbers to assign.
INSERT INTO watermark (name, value) VALUES ('next_process', 1), ('next_thread', 1);
