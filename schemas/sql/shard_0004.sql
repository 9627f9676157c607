-- When a session was seen last changes with each of its batches, and is asked for every ten minutes.
DROP INDEX session_last_seen;
