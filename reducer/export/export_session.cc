#include "reducer/export/export_session.h"

#include <sys/random.h>

#include "base/status.h"

namespace tributary {

store::ExportSession NewExportSession() {
  store::ExportSession session;
  TRIBUTARY_CHECK(getrandom(session.data(), session.size(), 0) == static_cast<ssize_t>(session.size()));
  return session;
}

}  // namespace tributary
