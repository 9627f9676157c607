-- Exporters report how many samples expired before they were exported. samples_end: the samples (sums of their counts) of
-- this chunk and of all earlier chunks; NULL: an earlier release wrote the chunk. Counts from 0 at the first commit with
-- this schema.
ALTER TABLE sample_chunk ADD COLUMN samples_end INTEGER;
-- samples_end of a removed chunk. It is correct as long as no later chunk is stored.
INSERT INTO watermark (name, value) VALUES ('samples_end', 0);
