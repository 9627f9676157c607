#include "base/whole_file.h"

#include <fcntl.h>
#include <fmt/format.h>

#include <atomic>
#include <cerrno>
#include <cstdio>

#include "base/fd.h"
#include "base/status.h"

namespace tributary {
namespace {

bool WriteAll(int fd, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t n = write(fd, bytes.data(), bytes.size());
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return false;
    bytes.remove_prefix(static_cast<size_t>(n));
  }
  return true;
}

}  // namespace

absl::Status WriteWholeFile(const std::string& path, std::span<const std::string_view> parts, bool durable,
                            mode_t mode) {
  // Of its own for each thread and process that writes the same path.
  static std::atomic<uint64_t> number{0};
  const std::string aside = fmt::format("{}.{}-{}.new", path, getpid(), number++);
  Fd file(open(aside.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode));
  if (!file.valid()) return ErrnoStatus("create", aside, errno);
  bool written = true;
  for (const std::string_view part : parts) written = written && WriteAll(file.get(), part);
  if (written && (!durable || fdatasync(file.get()) == 0) && rename(aside.c_str(), path.c_str()) == 0) {
    return absl::OkStatus();
  }
  const absl::Status status = ErrnoStatus("write", path, errno);
  unlink(aside.c_str());
  return status;
}

}  // namespace tributary
