-- The numbers of nodes and frames after this piece. NULL: an earlier release wrote the piece. So the numbers of later
-- pieces do not depend on a piece that cannot be read.
ALTER TABLE trie_chunk ADD COLUMN nodes_end INTEGER;
ALTER TABLE trie_chunk ADD COLUMN frames_end INTEGER;

-- Damaged pieces of tries (docs/store.md). Readers ignore the pieces first_piece to last_piece of trie_chunk, and put
-- placeholders in their place, up to nodes_end and frames_end. So no number changes its meaning.
CREATE TABLE trie_gap (
  id          INTEGER PRIMARY KEY AUTOINCREMENT,
  day         INTEGER NOT NULL,
  first_piece INTEGER NOT NULL,
  last_piece  INTEGER NOT NULL,
  nodes_end   INTEGER NOT NULL,
  frames_end  INTEGER NOT NULL,
  name        INTEGER NOT NULL,  -- of the placeholders: id in the table string, or 0
  found       INTEGER NOT NULL   -- unix ns
);

-- Damaged rows of other tables. They were moved here, so that no query meets them again.
CREATE TABLE set_aside (
  id      INTEGER PRIMARY KEY,
  found   INTEGER NOT NULL,  -- unix ns
  origin  TEXT NOT NULL,     -- the table that the row comes from
  piece   INTEGER NOT NULL,  -- the row's id in that table
  reason  BLOB NOT NULL,
  columns BLOB               -- NULL: even the row could not be read, or it is too large
);
