-- Sessions that have ended and cannot say so themselves.
-- closed_reason: the loss reason of what is missing; -1 while the session may speak. closed_captured: what another session
-- told of this one's share, which counts then instead of what it told itself; 0 = nothing. What is missing, the share - stored -
-- lost, is worked out when it is read: a batch that comes all the same makes it smaller, telling it twice changes nothing.
-- boot_ns: when the node's boot began, as the session's first batch told it; 0 = unknown.
ALTER TABLE session ADD COLUMN closed_reason INTEGER NOT NULL DEFAULT -1;
ALTER TABLE session ADD COLUMN closed_captured INTEGER NOT NULL DEFAULT 0;
ALTER TABLE session ADD COLUMN boot_ns INTEGER NOT NULL DEFAULT 0;
CREATE INDEX session_machine ON session (machine);
