-- Process events: starts, execs and exits of processes. A chunk contains the events of one machine in one slot of ten
-- minutes that were committed together, or were joined later. Slots are numbered from 1970-01-01 UTC. Later commits have higher ids. Ids are
-- never reused, because the positions of exporters refer to ids. raw_bytes: as in trie_chunk.
CREATE TABLE event_chunk (
  id        INTEGER PRIMARY KEY AUTOINCREMENT,
  slot      INTEGER NOT NULL,
  machine   INTEGER NOT NULL,
  events    INTEGER NOT NULL,  -- rows; a sum of events is one row
  raw_bytes INTEGER NOT NULL,
  columns   BLOB NOT NULL
);
CREATE INDEX event_chunk_slot ON event_chunk (slot, machine);
