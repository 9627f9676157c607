#include "reducer/export/rotated_files.h"

#include <dirent.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <system_error>
#include <utility>
#include <vector>

#include "base/status.h"
#include "base/whole_file.h"

namespace tributary {
namespace {

constexpr const char* kLockName = ".lock";
constexpr mode_t kDirectoryMode = 0750, kFileMode = 0640;
constexpr size_t kFilesMax = 5'000'000;  // more than all series with the largest value of `keep`
constexpr int kStampTries = 100;

// Returns the status of an error of a file. Only those errors for which EndsCall is true are the same for other files.
absl::Status FileError(std::string_view operation, const std::string& path, int error) {
  const absl::Status status = ErrnoStatus(operation, path, error);
  const bool is_disk = error == EIO || error == EROFS;
  return is_disk ? Error(absl::StatusCode::kUnavailable, ToStd(status.message())) : status;
}
bool EndsCall(const absl::Status& status) { return absl::IsResourceExhausted(status) || absl::IsUnavailable(status); }

// Returns the size of the file up to the end of its last whole line.
absl::StatusOr<int64_t> WholeLines(int fd, int64_t size, const std::string& path) {
  char buffer[65'536];
  while (size > 0) {
    const int64_t begin = std::max<int64_t>(size - static_cast<int64_t>(sizeof buffer), 0);
    const ssize_t n = pread(fd, buffer, static_cast<size_t>(size - begin), begin);
    if (n < 0 && errno == EINTR) continue;
    if (n != size - begin) return FileError("read", path, n < 0 ? errno : EBUSY);
    const size_t newline = std::string_view(buffer, static_cast<size_t>(n)).rfind('\n');
    if (newline != std::string_view::npos) return begin + static_cast<int64_t>(newline) + 1;
    size = begin;
  }
  return 0;
}

}  // namespace

std::string RotatedFiles::PathOf(std::string_view name) const { return fmt::format("{}/{}", options_.directory, name); }

RotatedFiles::RotatedFiles(Options options, const Clock& clock, Metrics& metrics)
    : options_(std::move(options)),
      clock_(clock),
      unusable_files_(metrics.AddCounter("tributary_export_unusable_files_total",
                                         "Files that were left alone, because they could not be opened, finished or "
                                         "removed, and files that became damaged, because they could not be synced.",
                                         {{"exporter", "file"}})) {}

absl::StatusOr<std::unique_ptr<RotatedFiles>> RotatedFiles::Open(Options options, const Clock& clock,
                                                                 Metrics& metrics) {
  std::unique_ptr<RotatedFiles> files(new RotatedFiles(std::move(options), clock, metrics));
  RETURN_IF_ERROR(files->OpenDirectory());
  RETURN_IF_ERROR(files->Lock());
  RETURN_IF_ERROR(files->Scan());
  return files;
}

absl::Status RotatedFiles::OpenDirectory() {
  const std::filesystem::path path(options_.directory);
  std::error_code error;
  std::filesystem::create_directories(path.parent_path(), error);
  if (error) return ErrnoStatus("make", path.parent_path().string(), error.value());
  if (mkdir(path.c_str(), kDirectoryMode) != 0 && errno != EEXIST) {
    return ErrnoStatus("make", options_.directory, errno);
  }
  directory_ = Fd(open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  struct stat info{};
  if (!directory_.valid() || fstat(directory_.get(), &info) != 0) return ErrnoStatus("open", options_.directory, errno);
  if ((info.st_mode & S_IWOTH) != 0) {
    return Error(absl::StatusCode::kPermissionDenied,
                 fmt::format("all users may write into the directory {}: chmod o-w it", options_.directory));
  }
  return absl::OkStatus();
}

absl::Status RotatedFiles::Lock() {
  lock_ = Fd(openat(directory_.get(), kLockName, O_RDWR | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, kFileMode));
  if (!lock_.valid()) return ErrnoStatus("open", PathOf(kLockName), errno);
  if (flock(lock_.get(), LOCK_EX | LOCK_NB) == 0) return absl::OkStatus();
  if (errno != EWOULDBLOCK) return ErrnoStatus("lock", PathOf(kLockName), errno);
  return Error(absl::StatusCode::kFailedPrecondition,
               fmt::format("another exporter or reducer writes into the directory {}: choose another directory",
                           options_.directory));
}

absl::Status RotatedFiles::Scan() {
  Fd fd(openat(directory_.get(), ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  std::unique_ptr<DIR, int (*)(DIR*)> dir(fd.valid() ? fdopendir(fd.get()) : nullptr, &closedir);
  if (!dir) return ErrnoStatus("list", options_.directory, errno);
  fd.Release();
  size_t count = 0;
  std::vector<FileName> parts;
  while (true) {
    errno = 0;
    const dirent* entry = readdir(dir.get());
    if (entry == nullptr) break;
    std::optional<FileName> name = ParseFileName(entry->d_name, options_.extension);
    if (!name) continue;
    if (++count > kFilesMax) {
      return Error(absl::StatusCode::kResourceExhausted,
                   fmt::format("the directory {} has more than {} files: remove some", options_.directory, kFilesMax));
    }
    if (name->is_part) {
      parts.push_back(*std::move(name));
    } else {
      series_[name->stem].finished.push_back(name->stamp_ms);
    }
  }
  if (errno != 0) return ErrnoStatus("list", options_.directory, errno);
  for (auto& [stem, series] : series_) std::sort(series.finished.begin(), series.finished.end());
  // One call for all files. The file system keeps the order of the changes below.
  const bool is_damaged = !parts.empty() && syncfs(directory_.get()) != 0;
  if (is_damaged) LeaveAlone(ErrnoStatus("sync", options_.directory, errno));
  for (FileName& part : parts) {
    Series& series = series_[part.stem];
    part.is_damaged = is_damaged;
    if (absl::Status status = TakeOver(part, &series); !status.ok()) LeaveAlone(status);
    if (series.finished.empty()) series_.erase(part.stem);
  }
  return absl::OkStatus();
}

// Counts and logs a file that cannot be used.
void RotatedFiles::LeaveAlone(const absl::Status& why) {
  unusable_files_.Add();
  if (uint64_t held = 0; unusable_log_.Allow(clock_.Monotonic(), &held)) {
    LogError("a file of the export cannot be used, and is left alone error=\"{}\" suppressed={}", why.ToString(), held);
  }
}

// Finishes a file that an earlier run left.
absl::Status RotatedFiles::TakeOver(FileName name, Series* series) {
  const std::string text = FormatFileName(name, options_.extension);
  ASSIGN_OR_RETURN(const Fd fd, OpenPart(text));
  struct stat info{};
  if (fstat(fd.get(), &info) != 0) return FileError("stat", PathOf(text), errno);
  ASSIGN_OR_RETURN(const int64_t bytes, WholeLines(fd.get(), info.st_size, PathOf(text)));
  if (bytes == 0) return Remove(text);
  if (bytes < info.st_size && ftruncate(fd.get(), bytes) != 0) return FileError("truncate", PathOf(text), errno);
  return Rename(name, series);
}

bool RotatedFiles::Admit(std::string_view stem, size_t series_max) {
  if (series_.size() < series_max || series_.contains(stem)) return true;
  auto oldest = series_.end();
  for (auto it = series_.begin(); it != series_.end(); ++it) {
    const bool has_ended = !it->second.part && !it->second.finished.empty();
    if (!has_ended) continue;
    if (oldest == series_.end() || it->second.finished.back() < oldest->second.finished.back()) oldest = it;
  }
  const int64_t age_ms = options_.rotate_after_ns / kNsPerMs * options_.keep;
  if (oldest == series_.end()) return false;
  if (oldest->second.finished.back() >= clock_.Unix().value / kNsPerMs - age_ms) return false;
  if (!RemoveFinished(oldest->first, 0, &oldest->second).ok()) return false;
  series_.erase(oldest);
  return true;
}

// The number of links is checked, because the caller may shorten the file.
absl::StatusOr<Fd> RotatedFiles::OpenPart(const std::string& name) const {
  Fd fd(openat(directory_.get(), name.c_str(), O_RDWR | O_APPEND | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
  struct stat info{};
  if (!fd.valid() || fstat(fd.get(), &info) != 0) return FileError("open", PathOf(name), errno);
  if (!S_ISREG(info.st_mode) || info.st_nlink > 1) {
    return Error(absl::StatusCode::kPermissionDenied,
                 fmt::format("{} is not a regular file, or has another name, too: remove it", PathOf(name)));
  }
  return fd;
}

// Opens the unfinished file. Removes bytes that a failed write left. If another program has shortened the file, then
// this is its new size.
absl::StatusOr<Fd> RotatedFiles::OpenTrimmed(const std::string& stem, Part* part) const {
  const std::string name = NameOf(stem, part->stamp_ms, true);
  ASSIGN_OR_RETURN(Fd fd, OpenPart(name));
  struct stat info{};
  if (fstat(fd.get(), &info) != 0) return FileError("stat", PathOf(name), errno);
  if (info.st_size > part->bytes && ftruncate(fd.get(), part->bytes) != 0) {
    return FileError("truncate", PathOf(name), errno);
  }
  part->bytes = std::min<int64_t>(part->bytes, info.st_size);
  return fd;
}

// A stamp is larger than those of all earlier files of the series, also if the clock was set back.
absl::Status RotatedFiles::Create(const std::string& stem, Series* series) {
  int64_t stamp_ms = clock_.Unix().value / kNsPerMs;
  if (!series->finished.empty()) stamp_ms = std::max(stamp_ms, series->finished.back() + 1);
  for (int i = 0; i < kStampTries; ++i, ++stamp_ms) {
    const std::string name = NameOf(stem, stamp_ms, true);
    const Fd fd(
        openat(directory_.get(), name.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, kFileMode));
    if (!fd.valid() && errno == EEXIST) continue;
    // The umask may have removed bits.
    if (!fd.valid() || fchmod(fd.get(), kFileMode) != 0) return FileError("create", PathOf(name), errno);
    series->part = Part{.stamp_ms = stamp_ms, .bytes = 0, .created = clock_.Monotonic()};
    return absl::OkStatus();
  }
  return FileError("create", PathOf(stem), EEXIST);
}

absl::Status RotatedFiles::Append(const std::string& stem, std::string_view lines) {
  const auto added = static_cast<int64_t>(lines.size());
  Series& series = series_[stem];
  if (series.part && series.part->bytes > 0 && added > options_.rotate_bytes - series.part->bytes) {
    RETURN_IF_ERROR(Finish(stem, &series));
  }
  absl::StatusOr<Fd> fd = absl::NotFoundError("");
  if (series.part) fd = OpenTrimmed(stem, &*series.part);
  if (!fd.ok() && !EndsCall(fd.status())) {
    // There is none, or another program has removed or changed it.
    if (!absl::IsNotFound(fd.status())) LeaveAlone(fd.status());
    Forget(stem, &series);
    absl::Status created = Create(stem, &series);
    if (!created.ok() && series.finished.empty()) series_.erase(stem);
    RETURN_IF_ERROR(created);
    fd = OpenTrimmed(stem, &*series.part);
  }
  RETURN_IF_ERROR(fd.status());
  undo_.try_emplace(stem, *series.part);
  const absl::Status written = WriteToFile(fd->get(), lines, PathOf(NameOf(stem, series.part->stamp_ms, true)));
  if (!written.ok()) {
    (void)!ftruncate(fd->get(), series.part->bytes);  // OpenTrimmed tries it again
    return written;
  }
  series.part->bytes += added;
  return absl::OkStatus();
}

void RotatedFiles::Undo() {
  for (const auto& [stem, before] : undo_) {
    const auto series = series_.find(stem);
    if (series == series_.end() || !series->second.part || series->second.part->stamp_ms != before.stamp_ms) continue;
    series->second.part->bytes = std::min(series->second.part->bytes, before.bytes);
    OpenTrimmed(stem, &*series->second.part).IgnoreError();
  }
  undo_.clear();
}

// Finishes the series' file, or leaves it alone.
absl::Status RotatedFiles::Finish(const std::string& stem, Series* series) {
  const absl::Status finished = FinishPart(stem, series);
  if (!finished.ok() && EndsCall(finished)) return finished;
  if (!finished.ok() && !absl::IsNotFound(finished)) LeaveAlone(finished);
  Forget(stem, series);
  return RemoveFinished(stem, options_.keep, series);
}

// Gives the series' file its final name. Removes the file if it is empty.
absl::Status RotatedFiles::FinishPart(const std::string& stem, Series* series) {
  ASSIGN_OR_RETURN(const Fd fd, OpenTrimmed(stem, &*series->part));
  FileName name{.stem = stem, .stamp_ms = series->part->stamp_ms, .is_part = true, .is_damaged = false};
  const std::string text = FormatFileName(name, options_.extension);
  if (series->part->bytes == 0) return Remove(text);
  // After a failure, the kernel may have dropped the lines, and reports success for the next attempt.
  if (!series->part->is_damaged && options_.sync(fd.get()) != 0) {
    series->part->is_damaged = true;
    LeaveAlone(FileError("sync", PathOf(text), errno));
  }
  name.is_damaged = series->part->is_damaged;
  return Rename(name, series);
}

// Ends the series' unfinished file. Undo cannot change it any more.
void RotatedFiles::Forget(const std::string& stem, Series* series) {
  series->part.reset();
  undo_.erase(stem);
}

// Gives an unfinished file its final name.
absl::Status RotatedFiles::Rename(const FileName& part, Series* series) {
  FileName last = part;
  last.is_part = false;
  if (!series->finished.empty()) last.stamp_ms = std::max(last.stamp_ms, series->finished.back() + 1);
  const std::string from = FormatFileName(part, options_.extension), to = FormatFileName(last, options_.extension);
  if (renameat(directory_.get(), from.c_str(), directory_.get(), to.c_str()) != 0) {
    return FileError("rename", PathOf(from), errno);
  }
  series->finished.push_back(last.stamp_ms);
  return absl::OkStatus();
}

absl::Status RotatedFiles::Remove(const std::string& name) const {
  if (unlinkat(directory_.get(), name.c_str(), 0) == 0 || errno == ENOENT) return absl::OkStatus();
  return FileError("remove", PathOf(name), errno);
}

absl::Status RotatedFiles::RemoveFinished(const std::string& stem, int64_t keep, Series* series) {
  std::deque<int64_t>& finished = series->finished;
  while (std::ssize(finished) > keep) {
    FileName name{.stem = stem, .stamp_ms = finished.front(), .is_part = false, .is_damaged = false};
    for (const bool is_damaged : {false, true}) {
      name.is_damaged = is_damaged;
      const absl::Status removed = Remove(FormatFileName(name, options_.extension));
      if (!removed.ok() && EndsCall(removed)) return removed;
      if (!removed.ok()) LeaveAlone(removed);
    }
    finished.pop_front();
  }
  return absl::OkStatus();
}

absl::Status RotatedFiles::Sweep(const std::function<bool()>& is_over) {
  size_t finishes = 0;
  for (auto it = series_.begin(); it != series_.end() && !is_over();) {
    auto& [stem, series] = *it;
    const bool is_old =
        series.part && clock_.Monotonic().value - series.part->created.value >= options_.rotate_after_ns;
    if (is_old && finishes < kFinishesMax) {
      ++finishes;
      RETURN_IF_ERROR(Finish(stem, &series));
    }
    RETURN_IF_ERROR(RemoveFinished(stem, options_.keep, &series));
    const bool has_files = series.part || !series.finished.empty();
    it = has_files ? std::next(it) : series_.erase(it);
  }
  return absl::OkStatus();
}

void RotatedFiles::FinishAll(int64_t within_ns) {
  const int64_t deadline_ns = clock_.Monotonic().value + within_ns;
  for (auto& [stem, series] : series_) {
    if (clock_.Monotonic().value >= deadline_ns) return;
    if (series.part) Finish(stem, &series).IgnoreError();
  }
}

}  // namespace tributary
