-- The numbers captured, stored, closed_captured and lost of a session, for each sample type other than CPU. Each type
-- has these values in LEB128: name and unit (length, bytes), captured, stored, closed_captured, the number of loss
-- reasons, the lost samples for each reason.
ALTER TABLE session ADD COLUMN types BLOB NOT NULL DEFAULT x'';
