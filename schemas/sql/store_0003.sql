-- The request that an exporter has begun at its cursor, and whose answer it does not know. It ends before the position
-- request_chunk, request_rows, request_samples, which are as chunk, next_rows and samples. request_session: 16 bytes;
-- NULL: there is no such request. request_first: number of its first sample or event in the session. request_count:
-- rows of samples, or process events, in the request.
ALTER TABLE cursor ADD COLUMN request_session BLOB;
ALTER TABLE cursor ADD COLUMN request_chunk INTEGER NOT NULL DEFAULT 0;
ALTER TABLE cursor ADD COLUMN request_rows INTEGER NOT NULL DEFAULT 0;
ALTER TABLE cursor ADD COLUMN request_samples INTEGER;
ALTER TABLE cursor ADD COLUMN request_first INTEGER NOT NULL DEFAULT 0;
ALTER TABLE cursor ADD COLUMN request_count INTEGER NOT NULL DEFAULT 0;
