#include "kernel-collector/events/cpu_times.h"

namespace tributary {

CpuTimes SplitRuntime(CpuTimes raw, uint64_t runtime_ns) {
  if (runtime_ns == 0) return raw;
  if (raw.system_ns == 0) return {.user_ns = runtime_ns};
  if (raw.user_ns == 0) return {.system_ns = runtime_ns};
  using Wide = unsigned __int128;
  const auto system_ns =
      static_cast<uint64_t>(Wide{raw.system_ns} * runtime_ns / (Wide{raw.user_ns} + Wide{raw.system_ns}));
  return {.user_ns = runtime_ns - system_ns, .system_ns = system_ns};
}

}  // namespace tributary
