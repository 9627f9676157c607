#include "kernel-collector/probes/perf_event.h"

#include <fcntl.h>
#include <linux/perf_event.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <memory>

#include "base/log.h"
#include "base/status.h"
#include "kernel-collector/probes/preflight.h"

namespace tributary {
namespace {

int ReadParanoid() {
  int value = 0;
  std::unique_ptr<FILE, int (*)(FILE*)> file(fopen("/proc/sys/kernel/perf_event_paranoid", "re"), fclose);
  if (file == nullptr || fscanf(file.get(), "%d", &value) != 1) return 0;
  return value;
}

absl::StatusOr<Fd> Open(perf_event_attr& attr, int cpu) {
  attr.size = sizeof(attr);
  Fd fd(static_cast<int>(syscall(SYS_perf_event_open, &attr, /*pid=*/-1, cpu, /*group=*/-1, PERF_FLAG_FD_CLOEXEC)));
  if (fd.valid()) return fd;
  if (errno == ENODEV) return ErrnoStatus("perf_event_open", fmt::format("on CPU {}", cpu), ENODEV);
  return ExplainPerfEventError(errno, ReadParanoid());
}

}  // namespace

absl::StatusOr<Fd> OpenSamplingEvent(int cpu, uint64_t period_ns, int program_fd) {
  perf_event_attr attr = {};
  attr.type = PERF_TYPE_SOFTWARE;
  attr.config = PERF_COUNT_SW_CPU_CLOCK;
  attr.sample_period = period_ns;
  attr.disabled = 1;
  ASSIGN_OR_RETURN(Fd fd, Open(attr, cpu));
  if (ioctl(fd.get(), PERF_EVENT_IOC_SET_BPF, program_fd) != 0) {
    return ErrnoStatus("attach the sampling program", fmt::format("on CPU {}", cpu), errno);
  }
  return fd;
}

absl::StatusOr<Fd> OpenSidebandEvent(int cpu, bool build_id) {
  perf_event_attr attr = {};
  attr.type = PERF_TYPE_SOFTWARE;
  attr.config = PERF_COUNT_SW_DUMMY;
  attr.sample_type = PERF_SAMPLE_TID | PERF_SAMPLE_TIME | PERF_SAMPLE_CPU;
  attr.sample_id_all = 1;
  attr.mmap = 1;
  attr.mmap2 = 1;
  attr.build_id = build_id;
  attr.comm = 1;
  attr.comm_exec = 1;
  attr.task = 1;
  attr.ksymbol = 1;
  attr.cgroup = 1;
  attr.use_clockid = 1;
  attr.clockid = CLOCK_MONOTONIC;
  // Wakes pollers each time half a ring is full, which 0 means. The ring is read on a timer that may come too late.
  attr.watermark = 1;
  attr.wakeup_watermark = 0;
  // For ReadEnabledNs.
  attr.read_format = PERF_FORMAT_TOTAL_TIME_ENABLED;
  return Open(attr, cpu);
}

absl::Status EnableEvent(const Fd& event) {
  if (ioctl(event.get(), PERF_EVENT_IOC_ENABLE, 0) == 0) return absl::OkStatus();
  return ErrnoStatus("enable", "perf event", errno);
}

absl::Status SetEventPeriod(const Fd& event, uint64_t period_ns) {
  if (ioctl(event.get(), PERF_EVENT_IOC_PERIOD, &period_ns) == 0) return absl::OkStatus();
  return ErrnoStatus("set the period of", "perf event", errno);
}

absl::StatusOr<int64_t> ReadEnabledNs(const Fd& event) {
  struct {
    uint64_t value, time_enabled_ns;
  } reading = {};
  ssize_t n = read(event.get(), &reading, sizeof(reading));
  if (n != sizeof(reading)) return ErrnoStatus("read", "perf event", n < 0 ? errno : EIO);
  return static_cast<int64_t>(reading.time_enabled_ns);
}

void DisableEvent(const Fd& event) {
  if (ioctl(event.get(), PERF_EVENT_IOC_DISABLE, 0) != 0) LogWarning("cannot disable a perf event errno={}", errno);
}

}  // namespace tributary
