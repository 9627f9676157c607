-- Sessions that have ended, as later sessions of the same node reported them. closed_reason: the loss reason of the
-- missing samples; -1 while the session may still send. closed_captured: the share of captured samples of this session,
-- as another session sent it. If it is not 0, it replaces the number `captured` that the session itself sent. The
-- missing samples (share - stored - lost) are calculated when the row is read. So if a batch arrives later, their
-- number becomes smaller. If the share is sent again, nothing changes. boot_ns: the time at which the machine was
-- booted, from the session's first batch; 0: unknown.
ALTER TABLE session ADD COLUMN closed_reason INTEGER NOT NULL DEFAULT -1;
ALTER TABLE session ADD COLUMN closed_captured INTEGER NOT NULL DEFAULT 0;
ALTER TABLE session ADD COLUMN boot_ns INTEGER NOT NULL DEFAULT 0;
CREATE INDEX session_machine ON session (machine);
