-- Processes and threads in columns (docs/store.md). If a load starts many processes, one row for each of them would
-- need more space than the samples. A slot is a period of ten minutes. Slots are numbered from 1970-01-01 UTC. A piece
-- (a row of this table) describes the processes and threads to which the samples of one slot, or of several consecutive
-- slots, refer. If several pieces describe the same process or thread, the piece with the highest id is used.
-- raw_bytes: as in trie_chunk.
CREATE TABLE process_chunk (
  id         INTEGER PRIMARY KEY,
  first_slot INTEGER NOT NULL,
  last_slot  INTEGER NOT NULL,
  raw_bytes  INTEGER NOT NULL,
  columns    BLOB NOT NULL
);
CREATE INDEX process_chunk_slots ON process_chunk (last_slot, first_slot);

-- The numbers that the next new process and the next new thread get.
INSERT INTO watermark (name, value) VALUES ('next_process', 1), ('next_thread', 1);
