-- How many nodes each machine has added to a day's trie: a machine may add only a share of all nodes. A row is written
-- when the number has grown by a 64th of the guaranteed share, so it may be a little behind.
CREATE TABLE trie_share (
  day     INTEGER NOT NULL,
  machine INTEGER NOT NULL,
  nodes   INTEGER NOT NULL,
  PRIMARY KEY (day, machine)
) WITHOUT ROWID;
