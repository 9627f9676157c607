-- The known versions of services (reducer/metadata/service_tracker.h). After a restart no change is reported twice and
-- none is missed.

CREATE TABLE program (
  namespace   BLOB    NOT NULL,
  service     BLOB    NOT NULL,
  environment BLOB    NOT NULL,
  executable  BLOB    NOT NULL,
  state       BLOB    NOT NULL,  -- in the encoding of OTEL_RESOURCE_ATTRIBUTES
  PRIMARY KEY (namespace, service, environment, executable)
) WITHOUT ROWID;
