#include "base/descriptor_limit.h"

#include <sys/resource.h>

#include <algorithm>
#include <cstdint>

#include "base/log.h"

namespace tributary {

size_t RaiseDescriptorLimit() {
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return 0;
  rlimit raised = limit;
  raised.rlim_cur = limit.rlim_max;
  if (setrlimit(RLIMIT_NOFILE, &raised) == 0) limit = raised;
  return static_cast<size_t>(std::min<rlim_t>(limit.rlim_cur, SIZE_MAX));
}

void WarnOfLowDescriptorLimit(size_t limit, size_t enough) {
  if (limit >= enough) return;
  LogWarning(
      "the limit on open files is too low limit={} enough={}: raise the hard limit (LimitNOFILE= of systemd, "
      "ulimit -Hn)",
      limit, enough);
}

}  // namespace tributary
