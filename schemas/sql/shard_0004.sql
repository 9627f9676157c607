-- The index is not worth its cost: last_seen changes with each batch of a session, but is used in a query only every
-- ten minutes.
DROP INDEX session_last_seen;
