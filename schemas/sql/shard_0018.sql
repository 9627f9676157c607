-- Rows of process events that were ever committed since this schema, and those that were stored before. Without the rows
-- that are still stored behind a position of an exporter, the number shows how many have expired there.
INSERT INTO watermark (name, value) SELECT 'events_committed', coalesce(sum(events), 0) FROM event_chunk;
-- Sums up `events` without reading the chunks.
CREATE INDEX event_chunk_events ON event_chunk (id, events);
