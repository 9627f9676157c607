#include "base/secret_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include "base/fd.h"
#include "base/status.h"

namespace tributary {
namespace {

int64_t Nanoseconds(const timespec& time) { return int64_t{time.tv_sec} * kNsPerSecond + time.tv_nsec; }

}  // namespace

absl::StatusOr<std::string> ReadSecretFile(const std::string& path, size_t bytes_max) {
  // Without O_NONBLOCK, a named pipe at this path would block this program.
  Fd file(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  struct stat info{};
  if (!file.valid() || fstat(file.get(), &info) != 0) return ErrnoStatus("open", path, errno);
  auto refuse = [&](std::string_view why) {
    return Error(absl::StatusCode::kInvalidArgument, fmt::format("{}: {}", path, why));
  };
  if (!S_ISREG(info.st_mode)) return refuse("is not a regular file");
  if ((info.st_mode & (S_IROTH | S_IWOTH)) != 0) {
    return refuse(fmt::format("every user of this machine has access to the file (mode {:04o}): chmod o-rwx",
                              static_cast<unsigned>(info.st_mode & 07777)));
  }
  std::string text;
  char buffer[16 << 10];
  while (true) {
    const ssize_t size = read(file.get(), buffer, sizeof(buffer));
    if (size < 0 && errno == EINTR) continue;
    if (size < 0) return ErrnoStatus("read", path, errno);
    if (size == 0) return text;
    text.append(buffer, static_cast<size_t>(size));
    if (text.size() > bytes_max) return refuse(fmt::format("has more than {} bytes", bytes_max));
  }
}

FileWatch::FileWatch(std::vector<std::string> paths, int64_t period_ns)
    : paths_(std::move(paths)), period_ns_(period_ns) {
  for (const std::string& path : paths_) stamps_.push_back(Look(path));
}

FileWatch::Stamp FileWatch::Look(const std::string& path) {
  struct stat info{};
  if (stat(path.c_str(), &info) != 0) return {};
  return {info.st_dev, info.st_ino, info.st_size, Nanoseconds(info.st_mtim), Nanoseconds(info.st_ctim)};
}

bool FileWatch::Changed(MonotonicNs now) {
  if (has_looked_ && now.value - looked_.value < period_ns_) return false;
  has_looked_ = true;
  looked_ = now;
  bool changed = false;
  for (size_t i = 0; i < paths_.size(); ++i) {
    const Stamp stamp = Look(paths_[i]);
    changed |= stamp != stamps_[i];
    stamps_[i] = stamp;
  }
  return changed;
}

}  // namespace tributary
