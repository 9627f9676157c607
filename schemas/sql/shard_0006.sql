-- The parts of a session's captured, stored, closed_captured and lost that belong to types other than CPU. For each
-- type, in LEB128: name and unit (length, bytes), captured, stored, closed_captured, the number of loss reasons, lost
-- by reason.
ALTER TABLE session ADD COLUMN types BLOB NOT NULL DEFAULT x'';
