#include <dirent.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <memory>
#include <system_error>
#include <utility>

#include "base/fd.h"
#include "base/status.h"
#include "base/whole_file.h"
#include "intake/spool/spool_directory.h"

// The spool's files on a real disk. Everything is opened relative to the directory's descriptor, and never through a
// symbolic link: the collector runs as root. The owner and mode of the directory were checked.

namespace tributary::intake {
namespace {

constexpr const char* kLockName = "LOCK";

class SpoolDirectory : public SpoolStorage {
 public:
  SpoolDirectory(std::string path, Fd directory, Fd lock)
      : path_(std::move(path)), directory_(std::move(directory)), lock_(std::move(lock)) {}

  absl::StatusOr<std::vector<std::string>> List() override {
    Fd fd(openat(directory_.get(), ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    if (!fd.valid()) return ErrnoStatus("open", path_, errno);
    std::unique_ptr<DIR, int (*)(DIR*)> dir(fdopendir(fd.get()), &closedir);
    if (!dir) return ErrnoStatus("list", path_, errno);
    fd.Release();
    std::vector<std::string> names;
    while (true) {
      errno = 0;
      const dirent* entry = readdir(dir.get());
      if (entry == nullptr) break;
      if (entry->d_type == DT_REG || entry->d_type == DT_UNKNOWN) names.emplace_back(entry->d_name);
    }
    if (errno != 0) return ErrnoStatus("list", path_, errno);
    return names;
  }

  absl::StatusOr<std::string> Read(const std::string& name) override {
    ASSIGN_OR_RETURN(const Fd fd, OpenFile(name, O_RDONLY | O_NONBLOCK));
    struct stat info{};
    if (fstat(fd.get(), &info) != 0) return ErrnoStatus("stat", PathOf(name), errno);
    if (!S_ISREG(info.st_mode))
      return Error(absl::StatusCode::kInvalidArgument, PathOf(name) + " is not a regular file");
    if (static_cast<uint64_t>(info.st_size) > kSpoolFileBytesMax) {
      return Error(absl::StatusCode::kOutOfRange, fmt::format("{} has {} bytes, but at most {} are allowed",
                                                              PathOf(name), info.st_size, kSpoolFileBytesMax));
    }
    return ReadBytes(fd, name, static_cast<size_t>(info.st_size));
  }

  absl::StatusOr<Start> ReadStart(const std::string& name, size_t bytes_max) override {
    ASSIGN_OR_RETURN(const Fd fd, OpenFile(name, O_RDONLY | O_NONBLOCK));
    struct stat info{};
    if (fstat(fd.get(), &info) != 0) return ErrnoStatus("stat", PathOf(name), errno);
    if (!S_ISREG(info.st_mode))
      return Error(absl::StatusCode::kInvalidArgument, PathOf(name) + " is not a regular file");
    const auto file_bytes = static_cast<uint64_t>(info.st_size);
    ASSIGN_OR_RETURN(std::string bytes, ReadBytes(fd, name, std::min<uint64_t>(bytes_max, file_bytes)));
    return Start{std::move(bytes), file_bytes};
  }

  absl::StatusOr<uint64_t> Size(const std::string& name) override {
    struct stat info{};
    if (fstatat(directory_.get(), name.c_str(), &info, AT_SYMLINK_NOFOLLOW) != 0) {
      return ErrnoStatus("stat", PathOf(name), errno);
    }
    return static_cast<uint64_t>(info.st_size);
  }

  absl::Status Append(const std::string& name, std::string_view bytes) override {
    ASSIGN_OR_RETURN(const Fd fd, OpenFile(name, O_WRONLY | O_APPEND | O_CREAT));
    return WriteToFile(fd.get(), bytes, PathOf(name));
  }

  absl::Status Overwrite(const std::string& name, uint64_t offset, std::string_view bytes) override {
    ASSIGN_OR_RETURN(const Fd fd, OpenFile(name, O_WRONLY));
    if (lseek(fd.get(), static_cast<off_t>(offset), SEEK_SET) < 0) return ErrnoStatus("seek", PathOf(name), errno);
    return WriteToFile(fd.get(), bytes, PathOf(name));
  }

  absl::Status Sync(const std::string& name) override {
    RETURN_IF_ERROR(SyncFile(name));
    return SyncNames();
  }

  absl::Status SyncAll(const std::vector<std::string>& names) override {
    absl::Status first;
    for (const std::string& name : names) first.Update(SyncFile(name));
    first.Update(SyncNames());
    return first;
  }

  absl::Status Truncate(const std::string& name, uint64_t bytes) override {
    ASSIGN_OR_RETURN(const Fd fd, OpenFile(name, O_WRONLY));
    if (ftruncate(fd.get(), static_cast<off_t>(bytes)) != 0) return ErrnoStatus("truncate", PathOf(name), errno);
    return absl::OkStatus();
  }

  absl::Status Remove(const std::string& name) override {
    if (unlinkat(directory_.get(), name.c_str(), 0) != 0 && errno != ENOENT) {
      return ErrnoStatus("remove", PathOf(name), errno);
    }
    return SyncNames();
  }

 private:
  std::string PathOf(const std::string& name) const { return path_ + "/" + name; }

  absl::StatusOr<Fd> OpenFile(const std::string& name, int flags) const {
    TRIBUTARY_CHECK(!name.empty() && name.find('/') == std::string::npos);
    Fd fd(openat(directory_.get(), name.c_str(), flags | O_NOFOLLOW | O_CLOEXEC, 0600));
    if (!fd.valid()) return ErrnoStatus("open", PathOf(name), errno);
    return fd;
  }

  // Returns fewer bytes if the file is shorter.
  absl::StatusOr<std::string> ReadBytes(const Fd& fd, const std::string& name, size_t size) const {
    std::string bytes(size, '\0');
    for (size_t at = 0; at < bytes.size();) {
      const ssize_t got = read(fd.get(), &bytes[at], bytes.size() - at);
      if (got < 0 && errno == EINTR) continue;
      if (got < 0) return ErrnoStatus("read", PathOf(name), errno);
      if (got == 0) bytes.resize(at);
      at += static_cast<size_t>(got);
    }
    return bytes;
  }

  absl::Status SyncFile(const std::string& name) const {
    ASSIGN_OR_RETURN(const Fd fd, OpenFile(name, O_WRONLY));
    if (fsync(fd.get()) != 0) return ErrnoStatus("sync", PathOf(name), errno);
    return absl::OkStatus();
  }

  absl::Status SyncNames() const {
    if (fsync(directory_.get()) != 0) return ErrnoStatus("sync", path_, errno);
    return absl::OkStatus();
  }

  const std::string path_;
  const Fd directory_;
  const Fd lock_;
};

// Makes the last component accessible only to its owner. The components above it get their mode from the umask.
absl::Status MakeDirectory(const std::filesystem::path& path) {
  std::error_code error;
  if (path.has_parent_path()) std::filesystem::create_directories(path.parent_path(), error);
  if (error) return ErrnoStatus("make", path.parent_path().string(), error.value());
  if (mkdir(path.c_str(), 0700) != 0) {
    return errno == EEXIST ? absl::OkStatus() : ErrnoStatus("make", path.string(), errno);
  }
  // The directory itself must exist after a power loss.
  const std::string above = path.has_parent_path() ? path.parent_path().string() : ".";
  const Fd parent(open(above.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!parent.valid() || fsync(parent.get()) != 0) return ErrnoStatus("sync", above, errno);
  return absl::OkStatus();
}

absl::Status CheckDirectory(int fd, const std::string& path) {
  struct stat info{};
  if (fstat(fd, &info) != 0) return ErrnoStatus("stat", path, errno);
  if (info.st_uid != geteuid()) {
    return Error(
        absl::StatusCode::kPermissionDenied,
        fmt::format("spool directory {} belongs to user {}: change its owner to user {} or choose another --spool-dir",
                    path, info.st_uid, geteuid()));
  }
  if ((info.st_mode & (S_IWGRP | S_IWOTH)) != 0) {
    return Error(absl::StatusCode::kPermissionDenied,
                 fmt::format("spool directory {} can be written by other users (mode {:o}): chmod 700 it or choose "
                             "another --spool-dir",
                             path, info.st_mode & 07777u));
  }
  return absl::OkStatus();
}

absl::StatusOr<Fd> LockDirectory(int directory, const std::string& path) {
  Fd lock(openat(directory, kLockName, O_RDWR | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0600));
  if (!lock.valid()) return ErrnoStatus("open", path + "/" + kLockName, errno);
  if (flock(lock.get(), LOCK_EX | LOCK_NB) != 0) {
    if (errno != EWOULDBLOCK) return ErrnoStatus("lock", path + "/" + kLockName, errno);
    char pid[16] = {};
    const ssize_t size = pread(lock.get(), pid, sizeof(pid) - 1, 0);
    return Error(absl::StatusCode::kFailedPrecondition,
                 fmt::format("spool directory {} is in use by another collector (pid {}): stop it or choose another "
                             "--spool-dir",
                             path, std::string_view(pid, static_cast<size_t>(std::max<ssize_t>(size, 0)))));
  }
  // The pid is only for the message above: a full disk must not keep a collector from starting.
  const std::string pid = fmt::format("{}", getpid());
  if (ftruncate(lock.get(), 0) == 0) (void)!pwrite(lock.get(), pid.data(), pid.size(), 0);
  return lock;
}

}  // namespace

absl::StatusOr<std::unique_ptr<SpoolStorage>> OpenSpoolDirectory(const std::string& given) {
  if (given.empty())
    return Error(absl::StatusCode::kInvalidArgument, "the spool directory has no name: set --spool-dir");
  std::string path = given;
  while (path.size() > 1 && path.back() == '/') path.pop_back();
  RETURN_IF_ERROR(MakeDirectory(path));
  Fd directory(open(path.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  if (!directory.valid() && (errno == ELOOP || errno == ENOTDIR)) {
    return Error(absl::StatusCode::kInvalidArgument,
                 fmt::format("spool directory {} is not a directory, or is a symbolic link: give a directory as "
                             "--spool-dir",
                             path));
  }
  if (!directory.valid()) return ErrnoStatus("open", path, errno);
  RETURN_IF_ERROR(CheckDirectory(directory.get(), path));
  ASSIGN_OR_RETURN(Fd lock, LockDirectory(directory.get(), path));
  return std::unique_ptr<SpoolStorage>(
      std::make_unique<SpoolDirectory>(std::move(path), std::move(directory), std::move(lock)));
}

}  // namespace tributary::intake
