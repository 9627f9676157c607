#include "base/process_metrics.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include <limits>
#include <memory>
#include <optional>

#include "base/fd.h"
#include "base/process_usage.h"
#include "base/types.h"
#include "base/version.h"
#include "base/whole_file.h"

namespace tributary {
namespace {

constexpr double kUnknown = std::numeric_limits<double>::quiet_NaN();
constexpr size_t kProcFileBytesMax = 1u << 20;  // /proc/stat has a few KB per hundred CPUs

std::string ReadProcFile(const std::string& path) {
  const Fd file(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!file.valid()) return "";
  return ReadWholeFile(file.get(), kProcFileBytesMax, path).value_or("");
}

double CpuSeconds() {
  timespec used = {};
  if (clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used) != 0) return kUnknown;
  return static_cast<double>(used.tv_sec) + static_cast<double>(used.tv_nsec) / kNsPerSecond;
}

double OpenFiles(const std::string& path) {
  const std::unique_ptr<DIR, int (*)(DIR*)> directory(opendir(path.c_str()), closedir);
  if (directory == nullptr) return kUnknown;
  int names = 0;
  while (const dirent* entry = readdir(directory.get())) names += entry->d_name[0] != '.' ? 1 : 0;
  return names - 1;  // without the descriptor that this function opened
}

double FilesMax() {
  rlimit limit = {};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return kUnknown;
  return limit.rlim_cur == RLIM_INFINITY ? std::numeric_limits<double>::infinity()
                                         : static_cast<double>(limit.rlim_cur);
}

double StartSeconds(const std::string& proc_root) {
  const std::optional<ProcessUsage> own = ParseProcessUsage(ReadProcFile(proc_root + "/self/stat"));
  const std::optional<uint64_t> boot = ParseBootTime(ReadProcFile(proc_root + "/stat"));
  if (!own || !boot) return kUnknown;
  return static_cast<double>(*boot) + static_cast<double>(own->start_ticks) / static_cast<double>(sysconf(_SC_CLK_TCK));
}

}  // namespace

void AddProcessMetrics(Metrics& metrics, std::string_view component, const std::string& proc_root) {
  auto gauge = [&metrics](std::string_view name, std::string_view help, std::function<double()> read) {
    metrics.AddCallback(name, help, /*is_counter=*/false, {}, std::move(read));
  };
  // Adds a gauge for a value of /proc/self/stat, multiplied by `unit`.
  auto stat = [&](std::string_view name, std::string_view help, uint64_t ProcessUsage::* field, double unit) {
    gauge(name, help, [path = proc_root + "/self/stat", field, unit] {
      const std::optional<ProcessUsage> own = ParseProcessUsage(ReadProcFile(path));
      return own ? static_cast<double>((*own).*field) * unit : kUnknown;
    });
  };
  metrics.AddCallback("process_cpu_seconds_total",
                      "User and system CPU time of the process, without its child processes",
                      /*is_counter=*/true, {}, CpuSeconds);
  stat("process_resident_memory_bytes", "Resident memory of the process, in bytes", &ProcessUsage::resident_pages,
       static_cast<double>(sysconf(_SC_PAGESIZE)));
  stat("process_virtual_memory_bytes", "Size of the process's address space, in bytes", &ProcessUsage::virtual_bytes,
       1);
  gauge("process_open_fds", "Number of open file descriptors",
        [path = proc_root + "/self/fd"] { return OpenFiles(path); });
  gauge("process_max_fds", "Maximum number of open file descriptors", FilesMax);
  gauge("process_start_time_seconds", "Unix time at which the process started",
        [start = StartSeconds(proc_root)] { return start; });
  stat("process_threads", "Number of threads of the process", &ProcessUsage::threads, 1);
  metrics.AddCallback(
      "tributary_build_info", "Always 1; the labels contain the program's version, commit and name",
      /*is_counter=*/false,
      {{"version", std::string(kVersion)}, {"commit", std::string(kCommit)}, {"component", std::string(component)}},
      [] { return 1.0; });
}

}  // namespace tributary
