#include "kernel-collector/processes/proc_reader.h"

#include <dirent.h>
#include <fmt/format.h>
#include <unistd.h>

#include <memory>

#include "base/number.h"
#include "base/status.h"
#include "kernel-collector/processes/proc_files.h"

namespace tributary {
namespace {

struct CloseDirectory {
  void operator()(DIR* dir) const { closedir(dir); }
};

constexpr uint64_t kPfKthread = 0x00200000;  // include/linux/sched.h

template <typename T>
bool ReadNumber(std::string_view text, T* value) {
  const std::optional<T> number = ParseNumber<T>(text);
  if (number) *value = *number;
  return number.has_value();
}

}  // namespace

absl::StatusOr<ProcStat> ParseProcStat(std::string_view text) {
  absl::Status malformed = Error(absl::StatusCode::kInvalidArgument, "stat: not a line of /proc/PID/stat");
  // The name may also hold ')', so the last ')' ends it.
  size_t open = text.find('('), close = text.rfind(')');
  if (open == std::string_view::npos || close == std::string_view::npos || close < open) return malformed;
  ProcStat stat;
  stat.comm = text.substr(open + 1, close - open - 1);
  std::string_view rest = text.substr(close + 1);
  uint64_t flags = 0;
  // Fields are counted as in the manual page: 3 is the state, 4 the parent, 9 the flags, 22 the start time.
  for (int field = 3; field <= 22; ++field) {
    if (rest.empty() || rest.front() != ' ') return malformed;
    rest.remove_prefix(1);
    size_t end = rest.find_first_of(" \n");
    std::string_view value = rest.substr(0, end);
    if (value.empty()) return malformed;
    if (field == 4 && !ReadNumber(value, &stat.parent.value)) return malformed;
    if (field == 9 && !ReadNumber(value, &flags)) return malformed;
    if (field == 22 && !ReadNumber(value, &stat.start_ticks)) return malformed;
    rest.remove_prefix(value.size());
  }
  stat.kernel_thread = (flags & kPfKthread) != 0;
  return stat;
}

std::vector<Pid> ProcReader::ListProcesses() const {
  std::vector<Pid> pids;
  std::unique_ptr<DIR, CloseDirectory> dir(opendir(root_.c_str()));
  if (dir == nullptr) return pids;
  while (const dirent* entry = readdir(dir.get())) {
    Pid pid;
    if (ReadNumber(std::string_view(entry->d_name), &pid.value) && pid.value > 0) pids.push_back(pid);
  }
  return pids;
}

absl::StatusOr<ProcSnapshot> ProcReader::Read(Pid pid) const {
  ProcSnapshot snapshot;
  snapshot.pid = pid;
  snapshot.read_at = clock_.Monotonic();
  std::string process = fmt::format("{}/{}", root_, pid.value);
  ASSIGN_OR_RETURN(std::string stat, ReadSmallFile(process + "/stat", 8192));
  ASSIGN_OR_RETURN(snapshot.stat, ParseProcStat(stat));
  if (snapshot.stat.kernel_thread) return snapshot;
  ASSIGN_OR_RETURN(std::string maps, ReadSmallFile(process + "/maps", kMapsBytesMax));
  ParseCodeMaps(maps, [&](MapsEntry entry) { snapshot.code.push_back(std::move(entry)); });
  char target[4096];
  ssize_t n = readlink((process + "/exe").c_str(), target, sizeof target);
  if (n > 0) snapshot.executable_path = WithoutDeleted({target, static_cast<size_t>(n)});
  return snapshot;
}

}  // namespace tributary
