-- The known versions of services (reducer/metadata/service_tracker.h). They are stored so that after a restart of the
-- reducer, no change of a version is reported twice or missed.

CREATE TABLE program (
  namespace   BLOB    NOT NULL,
  service     BLOB    NOT NULL,
  environment BLOB    NOT NULL,
  executable  BLOB    NOT NULL,
  state       BLOB    NOT NULL,  -- in the encoding of OTEL_RESOURCE_ATTRIBUTES
  PRIMARY KEY (namespace, service, environment, executable)
) WITHOUT ROWID;
