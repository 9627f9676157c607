-- An exporter may stop within a chunk. next_rows: so many rows of the chunk after `chunk` were sent. samples: the samples
-- before the cursor, as samples_end in sample_chunk; NULL: unknown.
ALTER TABLE cursor ADD COLUMN next_rows INTEGER NOT NULL DEFAULT 0;
ALTER TABLE cursor ADD COLUMN samples INTEGER;
