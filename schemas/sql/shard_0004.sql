-- last_seen changes with each batch of a session, but is only queried every ten minutes.
DROP INDEX session_last_seen;
