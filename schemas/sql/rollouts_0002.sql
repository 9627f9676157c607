-- What is known of services' versions (reducer/metadata/service_tracker.h), so that a restart tells of no change twice and misses none.

CREATE TABLE program (
  namespace   BLOB    NOT NULL,
  service     BLOB    NOT NULL,
  environment BLOB    NOT NULL,
  executable  BLOB    NOT NULL,
  state       BLOB    NOT NULL,  -- in the encoding of OTEL_RESOURCE_ATTRIBUTES
  PRIMARY KEY (namespace, service, environment, executable)
) WITHOUT ROWID;
