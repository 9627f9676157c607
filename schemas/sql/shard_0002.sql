-- Sessions that have ended and cannot report it themselves.
-- closed_reason: the loss reason of the missing samples; -1 while the session may still send.
-- closed_captured: the session's share as another session sent it. If it is not 0, it replaces the share that the
-- session itself sent. The missing samples (share - stored - lost) are calculated when the row is read. So a batch that
-- arrives later makes the number smaller, and repeating the message changes nothing.
-- boot_ns: the time when the node's boot began, from the session's first batch; 0: unknown.
ALTER TABLE session ADD COLUMN closed_reason INTEGER NOT NULL DEFAULT -1;
ALTER TABLE session ADD COLUMN closed_captured INTEGER NOT NULL DEFAULT 0;
ALTER TABLE session ADD COLUMN boot_ns INTEGER NOT NULL DEFAULT 0;
CREATE INDEX session_machine ON session (machine);
