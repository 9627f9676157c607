#include "kernel-collector/runtimes/jit/process_files.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <linux/openat2.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>

#include "base/number.h"
#include "base/status.h"
#include "kernel-collector/processes/proc_cgroup.h"
#include "kernel-collector/processes/proc_files.h"
#include "kernel-collector/processes/proc_reader.h"
#include "profile/cgroup_path.h"

namespace tributary {
namespace {

constexpr size_t kStatusBytesMax = 16u << 10, kCgroupBytesMax = 64u << 10;

absl::StatusOr<std::string> ReadSmallAt(const Fd& folder, const char* name) {
  Fd fd(openat(folder.get(), name, O_RDONLY | O_CLOEXEC));
  if (!fd.valid()) return ErrnoStatus("open", name, errno);
  std::string text(kStatusBytesMax, '\0');
  const ssize_t n = read(fd.get(), text.data(), text.size());
  if (n < 0) return ErrnoStatus("read", name, errno);
  text.resize(static_cast<size_t>(n));
  return text;
}

// Takes a word off the front of `text`.
std::string_view TakeWord(std::string_view& text) {
  text.remove_prefix(std::min(text.find_first_not_of(" \t"), text.size()));
  const std::string_view word = text.substr(0, text.find_first_of(" \t"));
  text.remove_prefix(word.size());
  return word;
}

}  // namespace

std::optional<ProcStatus> ParseProcStatus(std::string_view text) {
  constexpr std::string_view kUser = "Uid:", kInner = "NSpid:";
  ProcStatus status;
  bool has_user = false;
  while (!text.empty()) {
    const size_t newline = text.find('\n');
    std::string_view line = text.substr(0, newline);
    text.remove_prefix(newline == std::string_view::npos ? text.size() : newline + 1);
    if (line.starts_with(kUser)) {
      line.remove_prefix(kUser.size());
      TakeWord(line);  // the real user
      const auto user = ParseNumber<uint32_t>(TakeWord(line));
      if (!user) return std::nullopt;
      status.effective_user = *user;
      has_user = true;
    } else if (line.starts_with(kInner)) {
      line.remove_prefix(kInner.size());
      for (std::string_view word = TakeWord(line); !word.empty(); word = TakeWord(line)) {
        const auto pid = ParseNumber<int32_t>(word);
        if (!pid) return std::nullopt;
        status.inner_pid = Pid{*pid};
      }
    }
  }
  return has_user ? std::optional(status) : std::nullopt;
}

std::optional<std::string> ReadContainerId(const std::string& proc_root, Pid pid) {
  const auto text = ReadSmallFile(fmt::format("{}/{}/cgroup", proc_root, pid.value), kCgroupBytesMax);
  if (!text.ok()) return std::nullopt;
  const CgroupPaths paths = ParseProcCgroup(*text);
  std::string id = ParseCgroupPath(paths.unified).container_id;
  for (const CgroupPaths::Legacy& hierarchy : paths.legacy) {
    if (id.empty()) id = ParseCgroupPath(hierarchy.path).container_id;
  }
  return id;
}

absl::StatusOr<ProcessFiles> ProcessFiles::Open(const std::string& proc_root, Pid pid) {
  ProcessFiles files;
  const std::string path = fmt::format("{}/{}", proc_root, pid.value);
  files.folder_ = Fd(open(path.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  if (!files.folder_.valid()) return ErrnoStatus("open", path, errno);
  ASSIGN_OR_RETURN(const std::string text, ReadSmallAt(files.folder_, "status"));
  const auto status = ParseProcStatus(text);
  if (!status) return Error(absl::StatusCode::kInvalidArgument, fmt::format("{}/status: no user", path));
  ASSIGN_OR_RETURN(const std::string stat_text, ReadSmallAt(files.folder_, "stat"));
  ASSIGN_OR_RETURN(const ProcStat stat, ParseProcStat(stat_text));
  files.user_ = status->effective_user;
  files.inner_pid_ = status->inner_pid.value_or(pid);
  files.start_ticks_ = stat.start_ticks;
  return files;
}

absl::StatusOr<ProcessFiles::File> ProcessFiles::OpenOwned(const std::string& path) const {
  Fd root(openat(folder_.get(), "root", O_PATH | O_DIRECTORY | O_CLOEXEC));
  if (!root.valid()) return ErrnoStatus("open", "root", errno);
  open_how how{};
  how.flags = O_PATH | O_NOFOLLOW | O_CLOEXEC;
  how.resolve = RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS;
  // O_PATH has no effect on the file: opening a FIFO would block, opening a device can have effects.
  Fd found(static_cast<int>(syscall(SYS_openat2, root.get(), path.c_str(), &how, sizeof how)));
  if (!found.valid()) return ErrnoStatus("open", path, errno);
  File file;
  if (fstat(found.get(), &file.stat) != 0) return ErrnoStatus("stat", path, errno);
  if (!S_ISREG(file.stat.st_mode) || file.stat.st_nlink > 1) {
    return Error(absl::StatusCode::kFailedPrecondition, fmt::format("open {}: a link, or not a regular file", path));
  }
  if (file.stat.st_uid != user_ && file.stat.st_uid != 0) {
    return Error(absl::StatusCode::kPermissionDenied, fmt::format("open {}: another user owns it", path));
  }
  file.fd =
      Fd(open(fmt::format("/proc/self/fd/{}", found.get()).c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY));
  if (!file.fd.valid()) return ErrnoStatus("open", path, errno);
  return file;
}

}  // namespace tributary
