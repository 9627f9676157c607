#include "kernel-collector/budget/process_cpu.h"

#include <sys/resource.h>
#include <sys/types.h>
#include <time.h>

#include <filesystem>
#include <fstream>

#include "base/status.h"
#include "base/types.h"

namespace tributary {
namespace {

int64_t ReadClockNs(clockid_t clock) {
  timespec used = {};
  if (clock_gettime(clock, &used) != 0) return 0;  // the process is gone
  return used.tv_sec * kNsPerSecond + used.tv_nsec;
}

int64_t Ns(const timeval& time) { return time.tv_sec * kNsPerSecond + time.tv_usec * kNsPerUs; }

int64_t LiveChildrenNs() {
  int64_t sum = 0;
  std::error_code error;
  std::filesystem::directory_iterator thread("/proc/self/task", error), end;
  for (; !error && thread != end; thread.increment(error)) {
    std::ifstream children(thread->path() / "children");
    clockid_t clock;
    for (pid_t child; children >> child;) {
      if (clock_getcpuclockid(child, &clock) == 0) sum += ReadClockNs(clock);
    }
  }
  return sum;
}

}  // namespace

int64_t ProcessCpuNs() {
  rusage ended = {};
  TRIBUTARY_CHECK(getrusage(RUSAGE_CHILDREN, &ended) == 0);
  return ReadClockNs(CLOCK_PROCESS_CPUTIME_ID) + Ns(ended.ru_utime) + Ns(ended.ru_stime) + LiveChildrenNs();
}

}  // namespace tributary
