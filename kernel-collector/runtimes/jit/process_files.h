#pragma once

#include <sys/stat.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "base/fd.h"
#include "base/types.h"

namespace tributary {

// Opens files that a process has written for profilers. The process, and other users of its /tmp, are not trusted. So
// only regular files of the process's user or of root are opened, and paths cannot lead out of the process's root
// folder. The object refers to one process: if its pid is reused, all calls fail. Opening a file may block, because the
// process may have mounted a file system that does not answer. Any thread may use it.
class ProcessFiles {
 public:
  // NotFound: the process has ended.
  static absl::StatusOr<ProcessFiles> Open(const std::string& proc_root, Pid pid);

  uint32_t user() const { return user_; }       // the effective user, as this program sees it
  Pid inner_pid() const { return inner_pid_; }  // as the process itself sees it
  uint64_t start_ticks() const { return start_ticks_; }

  struct File {
    Fd fd;
    struct stat stat = {};
  };
  // Opens a file in the process's root folder. NotFound: there is no file. FailedPrecondition: it is no regular file,
  // or a link. PermissionDenied: another user owns it, or it cannot be opened.
  absl::StatusOr<File> OpenOwned(const std::string& path) const;

 private:
  Fd folder_;
  uint32_t user_ = 0;
  Pid inner_pid_;
  uint64_t start_ticks_ = 0;
};

// Returns the id of the container in which a process is, from /proc/PID/cgroup; "" if it is in no container. Returns
// nullopt if the process has ended. Only comparable with ids that this function has returned.
std::optional<std::string> ReadContainerId(const std::string& proc_root, Pid pid);

// The lines of /proc/PID/status that the collector needs. Returns nullopt if there is no valid line "Uid:".
struct ProcStatus {
  uint32_t effective_user = 0;
  std::optional<Pid> inner_pid;  // the last number of "NSpid:"; nullopt: the kernel has no such line
};
std::optional<ProcStatus> ParseProcStatus(std::string_view text);

}  // namespace tributary
