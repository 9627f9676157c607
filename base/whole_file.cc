#include "base/whole_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdio>

#include "base/fd.h"
#include "base/status.h"

namespace tributary {

absl::StatusOr<std::string> ReadWholeFile(int fd, size_t bytes_max, std::string_view name) {
  std::string bytes;
  char buffer[65'536];
  while (true) {
    const ssize_t n = pread(fd, buffer, sizeof(buffer), static_cast<off_t>(bytes.size()));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return ErrnoStatus("read", name, errno);
    if (n == 0) return bytes;
    if (static_cast<size_t>(n) > bytes_max - bytes.size()) {
      return Error(absl::StatusCode::kResourceExhausted,
                   fmt::format("read {}: the file has more than {} bytes", name, bytes_max));
    }
    bytes.append(buffer, static_cast<size_t>(n));
  }
}

absl::Status WriteToFile(int fd, std::string_view bytes, std::string_view name) {
  while (!bytes.empty()) {
    const ssize_t n = write(fd, bytes.data(), bytes.size());
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return ErrnoStatus("write", name, n < 0 ? errno : EIO);
    bytes.remove_prefix(static_cast<size_t>(n));
  }
  return absl::OkStatus();
}

absl::Status WriteWholeFile(const std::string& path, std::span<const std::string_view> parts, bool durable,
                            mode_t mode) {
  // Makes the name unique for each thread and process that writes the same path.
  static std::atomic<uint64_t> number{0};
  const std::string aside = fmt::format("{}.{}-{}.new", path, getpid(), number++);
  Fd file(open(aside.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode));
  if (!file.valid()) return ErrnoStatus("create", aside, errno);
  absl::Status status;
  for (const std::string_view part : parts) {
    if (status.ok()) status = WriteToFile(file.get(), part, path);
  }
  if (status.ok() && ((durable && fdatasync(file.get()) != 0) || rename(aside.c_str(), path.c_str()) != 0)) {
    status = ErrnoStatus("write", path, errno);
  }
  if (!status.ok()) unlink(aside.c_str());
  return status;
}

}  // namespace tributary
