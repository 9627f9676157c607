#include "kernel-collector/processes/proc_files.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <linux/openat2.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>

#include "base/status.h"

namespace tributary {
namespace {

absl::StatusOr<Fd> ReopenForReading(const Fd& path_fd, const std::string& path) {
  struct stat st{};
  if (fstat(path_fd.get(), &st) != 0) return ErrnoStatus("stat", path, errno);
  if (!S_ISREG(st.st_mode)) {
    return Error(absl::StatusCode::kFailedPrecondition, fmt::format("open {}: not a regular file", path));
  }
  Fd fd(open(fmt::format("/proc/self/fd/{}", path_fd.get()).c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY));
  if (!fd.valid()) return ErrnoStatus("open", path, errno);
  return fd;
}

}  // namespace

absl::StatusOr<std::string> ReadSmallFile(const std::string& path, size_t bytes_max) {
  ASSIGN_OR_RETURN(Fd fd, OpenRegularFile(path));
  std::string text;
  char buffer[16384];
  for (;;) {
    ssize_t n = read(fd.get(), buffer, sizeof buffer);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return ErrnoStatus("read", path, errno);
    if (n == 0) return text;
    if (text.size() + static_cast<size_t>(n) > bytes_max) {
      return Error(absl::StatusCode::kOutOfRange, fmt::format("read {}: more than {} bytes", path, bytes_max));
    }
    text.append(buffer, static_cast<size_t>(n));
  }
}

absl::StatusOr<Fd> OpenRegularFile(const std::string& path) {
  Fd fd(open(path.c_str(), O_PATH | O_CLOEXEC));
  if (!fd.valid()) return ErrnoStatus("open", path, errno);
  return ReopenForReading(fd, path);
}

absl::StatusOr<Fd> OpenRegularFileIn(const std::string& root, const std::string& path) {
  Fd root_fd(open(root.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  if (!root_fd.valid()) return ErrnoStatus("open", root, errno);
  open_how how{};
  how.flags = O_PATH | O_CLOEXEC;
  how.resolve = RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS;
  Fd fd(static_cast<int>(syscall(SYS_openat2, root_fd.get(), path.c_str(), &how, sizeof how)));
  if (!fd.valid()) return ErrnoStatus("open", root + path, errno);
  return ReopenForReading(fd, root + path);
}

}  // namespace tributary
